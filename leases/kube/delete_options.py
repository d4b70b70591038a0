"""The body of a delete request."""

from __future__ import annotations

from typing import Any


def delete_options(*, dry_run: bool, preconditions: dict[str, str]) -> dict[str, Any]:
    """Return complete metav1.DeleteOptions: with a body, the API server ignores the query."""
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if dry_run:
        options["dryRun"] = ["All"]
    if preconditions:
        options["preconditions"] = preconditions
    return options
