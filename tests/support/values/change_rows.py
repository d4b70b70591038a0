"""Rows of changes, unsaved."""

from __future__ import annotations

from leases.domain.change import Change
from leases.history.rows import WRITTEN, to_values
from leases.models import ChangeRecord


def to_row(change: Change) -> ChangeRecord:
    values = to_values(change, lambda moment: moment)
    return ChangeRecord(**dict(zip(WRITTEN, values, strict=True)))
