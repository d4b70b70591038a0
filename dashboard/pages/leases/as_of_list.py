"""The Leases page as of an instant: its rows, its controls and its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import msgspec

from dashboard.pages.leases.as_of_search import FoundAsOf
from dashboard.parts.formatting import age, thousands, when
from dashboard.parts.frame.list_controls import KIND_LABELS, Chip, query_of
from dashboard.parts.holder_name import HolderView, holder_view
from dashboard.parts.lease.row import lease_url
from dashboard.parts.query.blind_times import why_blind
from dashboard.parts.query.lease_filter import LeaseFilter
from dashboard.parts.query.url_time import write_moment
from leases.domain.kind import Kind
from leases.domain.past.as_of import PastPhase
from leases.domain.past.watched_times import UnwatchedTime
from leases.domain.phase import Phase
from leases.history.read.states_as_of import State
from leases.wire.microtime import format_microtime, microtime_or_none


class RowAsOf(msgspec.Struct, frozen=True, kw_only=True):
    """One Lease as of the instant; `stood_for` is how long it had been in that state."""

    key: str
    namespace: str
    name: str
    url: str
    phase: str
    kind: str
    holder: HolderView | None
    since: str
    stood_for: str
    transitions: str


class BoardAsOf(msgspec.Struct, frozen=True, kw_only=True):
    """The controls; `blind` says why nobody watched then, `absent` counts matching Leases of today
    that did not exist then.
    """

    at: str
    moment: str
    text: str
    namespace: str
    holder: str
    kept: tuple[tuple[str, str], ...]
    kinds: tuple[Chip, ...]
    phases: tuple[Chip, ...]
    blind: str
    absent: int
    first: int
    last: int
    total: int
    whole: bool
    previous_url: str
    next_url: str
    path: str
    now_url: str
    json_url: str


def rows_as_of(cluster: str, states: Sequence[State], at: datetime, now: datetime) -> list[RowAsOf]:
    return [_row(cluster, state, at, now) for state in states]


def _row(cluster: str, state: State, at: datetime, now: datetime) -> RowAsOf:
    standing, key = state.standing, state.key
    return RowAsOf(
        key=str(key),
        namespace=key.namespace,
        name=key.name,
        url=f"{lease_url(cluster, key.namespace, key.name)}?{urlencode({'at': write_moment(at)})}",
        phase=standing.phase.value,
        kind=state.kind.value,
        holder=holder_view(standing.holder),
        since=when(standing.since, now) if standing.since else "",
        stood_for=age((at - standing.since).total_seconds()) if standing.since else "",
        transitions="" if state.transitions is None else thousands(state.transitions),
    )


def board_as_of(
    path: str,
    wanted: LeaseFilter,
    found: FoundAsOf,
    *,
    at: datetime,
    now: datetime,
    blind: UnwatchedTime | None,
) -> BoardAsOf:
    """Make the controls; `path` is the page's own."""

    def url(**changes: Any) -> str:
        return f"{path}?{query_as_of(wanted, at, **{'page': 1, **changes})}"

    start = (found.number - 1) * wanted.limit
    last = min(start + wanted.limit, found.total)
    query = query_of(wanted, page=1)
    return BoardAsOf(
        at=write_moment(at),
        moment=when(at, now, fine=bool(at.microsecond)),
        text=wanted.text,
        namespace=wanted.namespace,
        holder=wanted.holder,
        kept=_kept(wanted),
        kinds=_kind_chips(wanted, url),
        phases=_phase_chips(wanted, found, url),
        blind=why_blind(blind),
        absent=found.absent,
        first=start + 1 if found.total else 0,
        last=last,
        total=found.total,
        whole=found.whole,
        previous_url=url(page=found.number - 1) if found.number > 1 else "",
        next_url=url(page=found.number + 1) if last < found.total else "",
        path=path,
        now_url=f"{path}?{query}" if query else path,
        json_url=url(format="json"),
    )


def _kept(wanted: LeaseFilter) -> tuple[tuple[str, str], ...]:
    """The parameters that the form must keep."""
    kinds = [("kind", kind.value) for kind in wanted.kinds]
    return (*kinds, *(("phase", phase.value) for phase in wanted.phases))


def query_as_of(wanted: LeaseFilter, at: datetime, **changes: Any) -> str:
    """The query string of a filter at an instant."""
    answer_as = changes.pop("format", "")
    pairs = [("at", write_moment(at))] + ([("format", answer_as)] if answer_as else [])
    return "&".join(filter(None, [query_of(wanted, **changes), urlencode(pairs)]))


def item_as_of(cluster: str, state: State, at: datetime, *, watched: bool) -> dict[str, Any]:
    """A past Lease with the fields of docs/api.md; what history does not keep is null.

    Without `watched`, it is the last known state.
    """
    standing = state.standing
    return {
        "cluster": cluster,
        "namespace": state.key.namespace,
        "name": state.key.name,
        "uid": state.uid,
        "kind": state.kind.value,
        "kind_reason": None,
        "phase": standing.phase.value,
        "holder": standing.holder,
        "acquire_time": None,
        "renew_time": None,
        "observed_at": None,
        "duration_seconds": None,
        "transitions": state.transitions,
        "cadence_seconds": None,
        "expires_at": None,
        "resource_version": None,
        "as_of": format_microtime(at),
        "since": microtime_or_none(standing.since),
        "watched": watched,
    }


def _kind_chips(wanted: LeaseFilter, url: Any) -> tuple[Chip, ...]:
    every = Chip("", "All", 0, url(kinds=()), not wanted.kinds)
    chips = (
        Chip(kind.value, KIND_LABELS[kind], 0, url(kinds=(kind,)), kind in wanted.kinds)
        for kind in Kind
    )
    return (every, *chips)


def _phase_chips(wanted: LeaseFilter, found: FoundAsOf, url: Any) -> tuple[Chip, ...]:
    """The phases, of which any may be on; none if too many Leases match."""
    if not found.whole:
        return ()
    chips = []
    for stood in (PastPhase.HELD, PastPhase.EXPIRED, PastPhase.VACANT):
        phase = Phase(stood.value)
        on = phase in wanted.phases
        others = tuple(p for p in wanted.phases if p is not phase)
        target = url(phases=others if on else (*others, phase))
        number = found.phases.get(stood, 0)
        chips.append(Chip(phase.value, phase.value.capitalize(), number, target, on))
    return tuple(chips)
