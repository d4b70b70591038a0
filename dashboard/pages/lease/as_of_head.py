"""The head of a Lease's page as of an instant: who held it then, by history."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dashboard.parts.formatting import age, capitalized, when
from dashboard.parts.frame.as_of_words import ABSENT, SIGNS, UNWATCHED, stood, stood_when_watched
from dashboard.parts.holder_name import holder_view
from dashboard.parts.query.blind_times import why_blind
from leases.domain.past.as_of import PastState
from leases.domain.past.watched_times import UnwatchedTime
from leases.history.read.states_as_of import State


def lease_as_of_view(
    standing: PastState,
    *,
    state: State | None,
    at: datetime,
    now: datetime,
    blind: UnwatchedTime | None,
) -> dict[str, Any]:
    word = stood_when_watched(standing, watched=blind is None)
    css, icon, said = SIGNS[word]
    return {
        "moment": when(at, now, fine=bool(at.microsecond)),
        "css": css,
        "icon": icon,
        "word": capitalized(said),
        "holder": holder_view(standing.holder),
        "says": _says(standing, word, at, now),
        "last": SIGNS[stood(standing)][2] if word == UNWATCHED else "",
        "blind": why_blind(blind),
        "kind": state.kind.value if state else "",
        "excuse": _excuse(state) if word != UNWATCHED else "",
    }


def _excuse(state: State | None) -> str:
    if state is None or not state.excused:
        return ""
    if state.abandoned:
        return "It was abandoned: nobody was expected to hold it again."
    return "It might be vacant: an admin had said so."


def _says(standing: PastState, word: str, at: datetime, now: datetime) -> str:
    if word == ABSENT:
        return "It was created later."
    if word == "unknown":
        return "Nothing that is remembered says how it stood then."
    if standing.since is None or not standing.exists:
        return ""
    since = when(standing.since, now)
    return f"since {since}, for {age((at - standing.since).total_seconds())} by then"
