"""Rows, tiles and heads of Leases, drawn once for all pages."""

from __future__ import annotations

from datetime import datetime

from dashboard.parts.frame import live_html
from leases.domain.lease import ObjectName
from leases.history.read.hourly_activity import Activity
from leases.tracking.tracked_lease import Tracked


class Drawings:
    """Rows drawn once for all pages, kept per part and Lease until the Lease changes."""

    LIMIT = 5000

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, ObjectName], tuple[Tracked, tuple[int, int], str]] = {}

    def draw(
        self,
        cluster: str,
        part: str,
        tracked: Tracked,
        now: datetime,
        activity: Activity,
        flaps: int = 0,
    ) -> str:
        """`flaps` counts the changes that make it flap."""
        place = (cluster, part, tracked.key)
        aside = now.hour, flaps  # the bars of a day move every hour
        kept = self._kept.get(place)
        if kept is not None and kept[0] is tracked and kept[1] == aside:
            return kept[2]
        html = live_html.PARTS[part](cluster, tracked, now, activity)
        if len(self._kept) >= self.LIMIT:
            self._kept.clear()
        self._kept[place] = (tracked, aside, html)
        return html


def looks_alike(one: Tracked, other: Tracked) -> bool:
    """Whether two states differ in freshness alone."""
    if one.lasting is other.lasting:
        return True
    a, b = one.lasting.lease, other.lasting.lease
    return (
        one.phase is other.phase
        and one.lasting.not_understood is other.lasting.not_understood
        and one.kind is other.kind
        and one.held_since == other.held_since
        and one.abandoned is other.abandoned
        and one.lasting.may_be_vacant == other.lasting.may_be_vacant
        and a.metadata.uid == b.metadata.uid
        and a.metadata.labels == b.metadata.labels
        and a.metadata.annotations == b.metadata.annotations
        and a.spec.holder_identity == b.spec.holder_identity
        and a.spec.lease_duration_seconds == b.spec.lease_duration_seconds
        and a.spec.acquire_time == b.spec.acquire_time
        and a.spec.lease_transitions == b.spec.lease_transitions
        and a.spec.strategy == b.spec.strategy
        and a.spec.preferred_holder == b.spec.preferred_holder
    )
