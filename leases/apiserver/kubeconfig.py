"""The kubeconfig that makes kubectl talk to the embedded API."""

from __future__ import annotations

import os
from pathlib import Path

from leases.apiserver.negotiation import to_yaml

CONTEXT = "leaseboard"


def write_kubeconfig(path: Path, *, url: str, token: str) -> None:
    """Write it anew, readable for its owner only."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": {"server": url}}],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
        "contexts": [
            {"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT, "namespace": "default"}}
        ],
        "current-context": CONTEXT,
    }
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as file:
        file.write(to_yaml(config))
    draft.replace(path)
