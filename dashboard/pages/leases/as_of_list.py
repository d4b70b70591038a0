"""The Leases page as of an instant: its rows, its controls and its JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from dashboard.pages.leases.as_of_search import FoundAsOf
from dashboard.parts.formatting import age, thousands, when
from dashboard.parts.frame.list_controls import LeaseLinks
from dashboard.parts.holder_name import holder_view
from dashboard.parts.lease.row import lease_url
from dashboard.parts.lease.shown_name import shown_name
from dashboard.parts.lease.vacancy_reason import ABANDONED, MAY_BE_VACANT
from dashboard.parts.query.blind_times import why_blind
from dashboard.parts.query.lease_filter import LeaseFilter
from dashboard.parts.query.url_time import write_moment
from leases.domain.past.as_of import PastPhase
from leases.domain.past.watched_times import UnwatchedTime
from leases.domain.phase import Phase
from leases.history.read.states_as_of import State
from leases.wire.microtime import format_microtime, microtime_or_none


def row_as_of(cluster: str, state: State, at: datetime, now: datetime) -> dict[str, Any]:
    standing, key = state.standing, state.key
    url = lease_url(cluster, key)
    return {
        "key": str(key),
        "namespace": key.namespace,
        "name": key.name,
        "shown": shown_name(cluster, key),
        "url": f"{url}?{urlencode({'at': write_moment(at)})}",
        "phase": standing.phase.value,
        "excuse": _excuse(state),
        "kind": state.kind.value,
        "holder": holder_view(standing.holder),
        "since": when(standing.since, now) if standing.since else "",
        "stood_for": age((at - standing.since).total_seconds()) if standing.since else "",
        "transitions": "" if state.transitions is None else thousands(state.transitions),
    }


def _excuse(state: State) -> str:
    if not state.excused:
        return ""
    return ABANDONED if state.abandoned else MAY_BE_VACANT


def board_as_of(
    path: str,
    wanted: LeaseFilter,
    found: FoundAsOf,
    *,
    at: datetime,
    now: datetime,
    blind: UnwatchedTime | None,
) -> dict[str, Any]:
    links = LeaseLinks(path, wanted)
    stood = (PastPhase.HELD, PastPhase.EXPIRED, PastPhase.VACANT) if found.whole else ()
    return {
        "at": write_moment(at),
        "instant": at,
        "moment": when(at, now, fine=bool(at.microsecond)),
        "wanted": wanted,
        "kept": links.kept("kind", "phase", "abandoned"),
        "kinds": links.kinds(),
        "phases": [links.phase(Phase(one.value), found.phases.get(one, 0)) for one in stood],
        "abandoned": links.abandoned(found.abandoned) if found.whole else None,
        "blind": why_blind(blind),
        "absent": found.absent,
        "whole": found.whole,
        "pager": links.pager(found.number, found.total),
        "path": path,
        "now_url": links.url(at=None),
        "json_url": links.json_url(page=1),
    }


def item_as_of(cluster: str, state: State, at: datetime, *, watched: bool) -> dict[str, Any]:
    """As docs/api.md has it; what history does not keep is null."""
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
        "abandoned": state.abandoned,
        "may_be_vacant": state.may_be_vacant,
        "flapping": None,
        "as_of": format_microtime(at),
        "since": microtime_or_none(standing.since),
        "watched": watched,
    }
