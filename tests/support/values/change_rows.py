"""Rows of changes, unsaved."""

from __future__ import annotations

from leases.domain.changes.change import Change
from leases.history.change_row import WRITTEN, to_values
from leases.models import ChangeRecord


def to_row(change: Change) -> ChangeRecord:
    values = to_values(change, lambda moment: moment)
    return ChangeRecord(**dict(zip(WRITTEN, values, strict=True)))
