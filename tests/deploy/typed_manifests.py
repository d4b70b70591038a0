"""Hold a manifest to the typed models of the Kubernetes client, which its OpenAPI document made."""

from __future__ import annotations

from typing import Any

from kubernetes import client
from pydantic import ValidationError


def faults(manifest: dict[str, Any]) -> list[str]:
    """Unknown fields, wrong types and missing required fields, each with its path."""
    kind = manifest["kind"]
    try:
        getattr(client, f"V1{kind}").model_validate(manifest)
    except ValidationError as error:
        return [f"{kind}.{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
    return []
