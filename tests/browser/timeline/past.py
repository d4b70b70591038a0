"""Writes a past into a data directory: `past.py NOW` makes one Lease that was handed over, with
a gap, one lock that was given back, sixty Leases that passed from one holder to the next, and one
that did so again and again.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
django.setup()

from leases.domain.change import Change, ChangeType  # noqa: E402
from leases.domain.kind import Kind  # noqa: E402
from leases.models import ChangeRecord as Row  # noqa: E402
from leases.models import WatchSpan  # noqa: E402
from tests.support.values.change_rows import to_row  # noqa: E402

LANES = 60
LONG = "keda-operator-6f9f9c5b4"  # a set of Pods, of which the first lane has two


def row(
    name: str, change: ChangeType, at: datetime, holder: str | None, version: int, **more
) -> Row:
    return to_row(
        Change(
            cluster="embedded",
            namespace="default",
            name=name,
            uid=f"uid-{name}",
            kind=more.pop("kind", Kind.ELECTION),
            change=change,
            at=at,
            observed_at=at,
            holder=holder,
            resource_version=str(version),
            own_identity=f"uid-{name} {change} {version}",
            **more,
        )
    )


def main() -> None:
    now = datetime.fromisoformat(sys.argv[1])
    rows = [
        row("handed-over", ChangeType.CREATED, now - timedelta(hours=5), "cp-1", 1),
        row("handed-over", ChangeType.EXPIRED, now - timedelta(hours=3), "cp-1", 2),
        row(
            "handed-over", ChangeType.TAKEN_OVER, now - timedelta(hours=2, minutes=40), "cp-2", 3,
            previous_holder="cp-1", gap_seconds=1200.0,
        ),
        row("lock", ChangeType.CREATED, now - timedelta(hours=5), "cp-1", 1, kind=Kind.LOCK),
        row(
            "lock", ChangeType.RELEASED, now - timedelta(hours=3), None, 2, kind=Kind.LOCK,
            previous_holder="cp-1",
        ),
    ]  # fmt: skip
    for number in range(LANES):
        name = f"lane-{number:02}"
        first, last = ("cp-1", "cp-3") if number else (f"{LONG}-r88ds", f"{LONG}-9c2t9")
        rows.append(row(name, ChangeType.CREATED, now - timedelta(hours=5), first, 1))
        rows.append(row(name, ChangeType.REPLACED, now - timedelta(hours=1), last, 2))
    rows.append(row("busy", ChangeType.CREATED, now - timedelta(hours=5), "cp-1", 1))
    for number in range(60):
        at = now - timedelta(minutes=100) + number * timedelta(seconds=20)
        rows.append(row("busy", ChangeType.REPLACED, at, f"cp-{number % 2 + 1}", number + 2))
    Row.objects.bulk_create(rows)
    WatchSpan.objects.create(
        cluster="embedded",
        process="past",
        since=now - timedelta(hours=6),
        until=datetime.now(UTC),
        ended="stopped",
    )


main()
