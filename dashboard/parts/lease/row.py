"""One Lease as a row of a table; the head of the Lease's page uses it too."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from django.urls import reverse

from dashboard.charts.sparkline import Sparkline, sparkline
from dashboard.parts.formatting import age, thousands, when
from dashboard.parts.holder_name import HolderView, holder_view
from dashboard.parts.lease.flapping import FlapView, flap_view
from dashboard.parts.lease.freshness import Freshness, freshness
from dashboard.parts.lease.not_understood import skipped_in_short, state_of
from dashboard.parts.lease.shown_name import ShownName, shown_name
from dashboard.parts.lease.vacancy_reason import excuse_of
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.past.flapping import Flapping
from leases.domain.phase import Phase
from leases.tracking.tracked_lease import Tracked


class RowView(msgspec.Struct, frozen=True, kw_only=True):
    """`held_since` (epoch s) is the start of the present term; `spark` shows the changes of the
    last day. `skipped` says that the newest write was not understood; the phase is unknown then.
    `excuse` says why it is no problem that nobody holds it.
    """

    key: str
    namespace: str
    name: str
    shown: ShownName  # without its domain
    domain: str  # the end of `name` that all nodes share
    url: str
    phase: str
    kind: str
    kind_reason: str
    holder: HolderView | None
    held_since: float | None
    held_for: str
    vacant_since: str
    fresh: Freshness | None
    transitions: str
    spark: Sparkline | None = None
    skipped: str = ""
    flap: FlapView | None = None
    excuse: str = ""


def lease_url(cluster: str, key: ObjectName) -> str:
    return reverse("lease", args=[cluster, key.namespace, key.name])


def row_view(
    cluster: str,
    tracked: Tracked,
    now: datetime,
    *,
    hours: Sequence[int] = (),
    unwatched: Sequence[str] = (),
    flapping: Flapping | None = None,
) -> RowView:
    """`hours` counts the day's changes; `unwatched` says how much of each hour nobody watched."""
    key, spec = tracked.key, tracked.lasting.lease.spec
    skipped = skipped_in_short(tracked, now)
    held = None if skipped or tracked.phase is Phase.VACANT else tracked.held_since
    ran_out = tracked.phase_since if tracked.phase is Phase.EXPIRED else None
    return RowView(
        key=str(key),
        namespace=key.namespace,
        name=key.name,
        shown=shown_name(cluster, key, domain_of(tracked)),
        domain=domain_of(tracked),
        url=lease_url(cluster, key),
        phase=state_of(tracked),
        kind=tracked.kind.value,
        kind_reason=tracked.kind_reason,
        holder=holder_view(tracked.holder),
        held_since=held.timestamp() if held and not ran_out else None,
        held_for=age(((ran_out or now) - held).total_seconds()) if held else "",
        vacant_since=when(tracked.phase_since, now) if tracked.phase is Phase.VACANT else "",
        fresh=None if skipped else freshness(tracked, now),
        transitions="" if spec.lease_transitions is None else thousands(spec.lease_transitions),
        spark=sparkline(hours, unwatched) if hours else None,
        skipped=skipped,
        flap=flap_view(flapping, tracked.kind) if flapping else None,
        excuse=excuse_of(tracked),
    )


def domain_of(tracked: Tracked) -> str:
    """The domain in a node's name, such as `.eu-central-1`; "" for other kinds."""
    if tracked.kind is not Kind.HEARTBEAT:
        return ""
    _, dot, domain = tracked.key.name.partition(".")
    return dot + domain


def short_name(tracked: Tracked) -> str:
    return tracked.key.name.removesuffix(domain_of(tracked) or "\0")
