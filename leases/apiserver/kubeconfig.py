"""The kubeconfig that makes kubectl talk to the embedded API."""

from __future__ import annotations

import os
from base64 import b64encode
from pathlib import Path

import yaml

from leases.apiserver.negotiation import to_yaml

CONTEXT = "leaseboard"


def token_in(path: Path) -> str | None:
    """The token of a kubeconfig that was written here before; None where there is none to be read."""
    try:
        token = yaml.safe_load(path.read_bytes())["users"][0]["user"]["token"]
    except (OSError, yaml.YAMLError, LookupError, TypeError):
        return None
    return token if isinstance(token, str) and token else None


def write_kubeconfig(path: Path, *, url: str, authority: bytes, token: str) -> None:
    """Write it anew, readable for its owner only; `authority` is the PEM certificate to trust.

    The address is https: client-go sends no token over plain http.
    """
    cluster = {"server": url, "certificate-authority-data": b64encode(authority).decode()}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
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
