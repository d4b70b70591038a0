"""Changes for the tests of history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.history import write_batch

T0 = datetime(2026, 11, 20, 12, 0, 0, 123456, tzinfo=UTC)


def a_change(number: int = 0, **given: Any) -> Change:
    """One change, `number` seconds after T0."""
    at = T0 + timedelta(seconds=number)
    values: dict[str, Any] = {
        "cluster": "a",
        "namespace": "kube-system",
        "name": "scheduler",
        "uid": "u-1",
        "kind": Kind.ELECTION,
        "change": ChangeType.TAKEN_OVER,
        "at": at,
        "observed_at": at,
        "holder": "cp-1",
        "previous_holder": "cp-2",
        "resource_version": str(100 + number),
        "transitions": number,
        "gap_seconds": 1.5,
    }
    return Change(**(values | given))


def remembered() -> tuple[tuple[bytes, ...], str, datetime] | None:
    """What is remembered of the cluster `a`."""
    found = write_batch.load("a")
    return found and (tuple(found.records), found.resource_version, found.watched_until)
