"""A Lease as YAML in the order of the API, and the difference of two."""

from __future__ import annotations

import difflib
from typing import Any

import yaml


def to_yaml(item: dict[str, Any]) -> str:
    """Keys in their given order, no aliases, no line folding."""
    return yaml.safe_dump(item, sort_keys=False, allow_unicode=True, width=1000)


def without_managed_fields(item: dict[str, Any]) -> dict[str, Any]:
    """The same object without managedFields, which would bury the rest."""
    metadata = {k: v for k, v in item.get("metadata", {}).items() if k != "managedFields"}
    return {**item, "metadata": metadata}


def diff_lines(before: str, after: str) -> list[tuple[str, str]]:
    """The lines of both texts with their sign: " ", "-" or "+"."""
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [(line[0], line[2:]) for line in lines if line[0] != "?"]
