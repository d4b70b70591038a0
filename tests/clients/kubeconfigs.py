"""Other kubeconfigs than the one that the server writes."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.apiserver.clients import Process


def without_tls(api: Process, path: Path) -> Path:
    """The server's kubeconfig, written to `path` for the same port without TLS."""
    config = yaml.safe_load((api.data / "kubeconfig").read_text())
    config["clusters"][0]["cluster"] = {"server": api.url}
    path.write_text(yaml.safe_dump(config))
    return path
