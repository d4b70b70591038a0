"""The head of a Lease's page: who holds it, why it is in its phase, what if the holder died."""

from __future__ import annotations

from datetime import datetime

import msgspec
from django.urls import reverse

from dashboard.parts.formatting import age, seconds
from dashboard.parts.holder_name import HolderView, holder_view
from dashboard.parts.lease.forecast import ForecastView, forecast_view
from dashboard.parts.lease.not_understood import skipped_in_full
from dashboard.parts.lease.page_links import LAST_HOUR, history_url, holder_url, timeline_url
from dashboard.parts.lease.phase_reason import WhyPart, why
from dashboard.parts.lease.row import RowView, row_view
from dashboard.parts.lease.vacancy_reason import excuse_in_full
from leases.domain.election.candidates import end_of_term
from leases.domain.kind import Kind
from leases.domain.past.flapping import Flapping
from leases.domain.phase import Phase, explain
from leases.tracking.tracked_lease import Tracked


class LeaseView(msgspec.Struct, frozen=True, kw_only=True):
    """`why` and `forecast` count from `observed` (epoch s); `successor` is the preferred holder."""

    row: RowView
    edit_url: str
    holder_url: str
    timeline_url: str
    observed: float
    why: tuple[WhyPart, ...]
    forecast: ForecastView
    successor: HolderView | None
    excuse: str
    every: str
    expired_for: str
    expired_since: float | None
    last_hour_url: str


def lease_view(
    cluster: str, tracked: Tracked, now: datetime, *, flapping: Flapping | None = None
) -> LeaseView:
    meta = tracked.lease.metadata
    expired = tracked.phase is Phase.EXPIRED
    skipped = skipped_in_full(tracked, now)
    return LeaseView(
        row=row_view(cluster, tracked, now, flapping=flapping),
        edit_url=reverse("lease_edit", args=[cluster, meta.namespace, meta.name]),
        holder_url=_holder_url(cluster, tracked),
        timeline_url=timeline_url(cluster, tracked.key, tracked.kind),
        observed=tracked.observed_at.timestamp(),
        why=(WhyPart(skipped),) if skipped else why(explain(tracked, now)),
        forecast=forecast_view(tracked, now),
        successor=holder_view(end_of_term(tracked.lease)),
        excuse=excuse_in_full(tracked),
        every=seconds(tracked.cadence_seconds) if tracked.cadence_seconds else "",
        expired_for=age((now - tracked.phase_since).total_seconds()) if expired else "",
        expired_since=tracked.phase_since.timestamp() if expired else None,
        last_hour_url=history_url(cluster, tracked.key, LAST_HOUR),
    )


def _holder_url(cluster: str, tracked: Tracked) -> str:
    """Holders lists no heartbeats."""
    if tracked.holder is None:
        return ""
    return holder_url(cluster, tracked.holder, in_leases=tracked.kind is Kind.HEARTBEAT)
