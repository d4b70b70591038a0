"""Hold a manifest to the OpenAPI schemas of one version of Kubernetes, unknown fields included."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tests.deploy.operator_schemas import VALIDATORS, operator_faults

VERSIONS = tuple(f"1.{minor}" for minor in range(30, 37))
SCHEMAS = files("kubernetes_validate") / "kubernetes-json-schema"


@cache
def validator_of(version: str, kind: str, api_version: str) -> Draft202012Validator | None:
    """None where this version has no such kind."""
    group, slash, short = api_version.rpartition("/")
    suffix = f"{group.partition('.')[0]}-{short}" if slash else short
    path = SCHEMAS / f"v{version}.0-local-strict" / f"{kind.lower()}-{suffix}.json"
    if not path.is_file():
        return None
    return Draft202012Validator(json.loads(path.read_text()), registry=_definitions(version))


@cache
def _definitions(version: str) -> Registry[Any]:
    path = SCHEMAS / f"v{version}.0-local-strict" / "_definitions.json"
    return Resource.from_contents(json.loads(path.read_text())) @ Registry()


def faults(manifest: dict[str, Any], version: str = VERSIONS[-1]) -> list[str]:
    """Unknown fields, wrong types and missing required fields, each with its path."""
    kind = str(manifest["kind"])
    if kind in VALIDATORS:
        return operator_faults(manifest)
    validator = validator_of(version, kind, str(manifest["apiVersion"]))
    if validator is None:
        return [f"Kubernetes {version} has no {kind} of {manifest['apiVersion']}"]
    found = validator.iter_errors(manifest)
    return [f"{kind}{error.json_path[1:]}: {error.message}" for error in found]
