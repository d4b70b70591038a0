"""Run kubectl as a person does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class Kubectl:
    """Runs kubectl in one namespace, with a home of its own: what it caches is of this server."""

    def __init__(self, kubeconfig: Path, namespace: str = "") -> None:
        """Without a namespace each object says where it belongs."""
        self.home = kubeconfig.parent
        self.command = ["kubectl", "--kubeconfig", str(kubeconfig)]
        self.command += ["--namespace", namespace] if namespace else []
        # Without Go's garbage collector, for it ends before there is much to collect.
        self.environment = {**os.environ, "HOME": str(self.home), "GOGC": "off"}
        self.environment.pop("KUBECONFIG", None)

    def run(self, *arguments: str, stdin: str = "", check: bool = True, **environment: str) -> str:
        done = subprocess.run(
            [*self.command, *arguments],
            env=self.environment | environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def read(self, path: str) -> str:
        return self.run("get", "lease", "demo", "-o", f"jsonpath={{{path}}}")
