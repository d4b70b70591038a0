"""The kubeconfig that makes kubectl talk to the embedded API."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from leases.apiserver.codec.yaml.yaml_output import to_yaml
from leases.private_file import write_private

CONTEXT = "leaseboard"


def write_kubeconfig(path: Path, *, server: str, certificate: bytes, token: str) -> None:
    """`certificate` is the server's certificate in PEM."""
    cluster = {
        "server": server,
        "certificate-authority-data": base64.b64encode(certificate).decode(),
    }
    context = {"cluster": CONTEXT, "user": CONTEXT, "namespace": "default"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": context}],
        "current-context": CONTEXT,
    }
    write_private(path, to_yaml(config))


def token_in(path: Path) -> str | None:
    """The token that an earlier run wrote; None if the file is unreadable."""
    try:
        config: Any = yaml.safe_load(path.read_bytes())
        token = config["users"][0]["user"]["token"]
    except (OSError, yaml.YAMLError, KeyError, IndexError, TypeError):
        return None
    return token if isinstance(token, str) and token else None
