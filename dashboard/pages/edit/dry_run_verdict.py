"""The server's verdict on a write: the difference, its warnings, and what it would leave out."""

from __future__ import annotations

from typing import Any

import msgspec

from dashboard.parts.formatting import shortened
from dashboard.parts.frame.lease_yaml import diff_lines, to_yaml, without_managed_fields
from leases.actions.guarded_write import DryRun
from leases.domain.edit.merge_patch import Kept

MAX_SHOWN = 160
GATED = ("spec.strategy", "spec.preferredHolder")


class VerdictView(msgspec.Struct, frozen=True, kw_only=True):
    """`diff` has lines with their sign; `dropped` are sentences about fields it would not take."""

    diff: list[tuple[str, str]]
    warnings: tuple[str, ...]
    dropped: tuple[str, ...]


def verdict_view(verdict: DryRun) -> VerdictView:
    return VerdictView(
        diff=difference(verdict.before, verdict.after),
        warnings=verdict.warnings,
        dropped=tuple(_dropped(kept) for kept in verdict.not_taken),
    )


def difference(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str]]:
    """Compare the spec, and other parts only if they differ."""
    sides = [_lasting(side) for side in (before, after)]
    parts = [part for part in sides[1] if part == "spec" or sides[0].get(part) != sides[1][part]]
    texts = [to_yaml({part: side[part] for part in parts if part in side}) for side in sides]
    return diff_lines(*texts)


def _lasting(item: dict[str, Any]) -> dict[str, Any]:
    """Without the fields that every write changes."""
    item = without_managed_fields(item)
    item["metadata"].pop("resourceVersion", None)
    return item


def _dropped(kept: Kept) -> str:
    sent = shortened(_text(kept.sent), MAX_SHOWN)
    if kept.got is not None:
        got = shortened(_text(kept.got), MAX_SHOWN)
        return f"{kept.path}: the server would make it {got} instead of {sent}."
    why = ""
    if kept.path in GATED:
        why = " Its feature gate CoordinatedLeaderElection is off."
    return f"{kept.path}: the server would silently drop {sent}.{why}"


def _text(value: Any) -> str:
    return "nothing" if value in (None, "") else str(value)
