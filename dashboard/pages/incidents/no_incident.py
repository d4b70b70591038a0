"""The words for a list without incidents. It is good news only where somebody watched."""

from __future__ import annotations

from datetime import datetime

from dashboard.parts.all_clear import Calm
from dashboard.parts.formatting import age, counted, when
from dashboard.parts.kept.watched_cluster import WatchedCluster
from leases.domain.changes.change import HOLDER_CHANGES, ChangeType
from leases.domain.connection import ConnectionState
from leases.domain.kind import Kind
from leases.history.read import find_changes
from leases.history.read.indexed_search import HistoryFilter
from leases.history.write.watched_spans import unwatched_times, watched_since

_JUDGED = (*HOLDER_CHANGES, ChangeType.EXPIRED, ChangeType.RELEASED, ChangeType.DELETED)
_HOW = "An incident is opened when a Lease changes hands, runs out or is deleted."


def no_incident(watched: WatchedCluster, now: datetime) -> Calm:
    """`now` is our clock; what is known may be older."""
    connection = watched.store.connection
    is_live = connection.state is ConnectionState.LIVE
    first = watched_since(watched.name)
    began = first or (connection.since if is_live else None)  # history notes it seconds later
    if connection.state is ConnectionState.REFUSED:
        return Calm("No access", connection.detail, "i-unplug")
    if began is None or not watched.synced:
        usual = "There is no connection to the cluster yet, so nothing is known."
        return Calm("Not watched yet", connection.detail or usual, "i-unplug")
    if not is_live:
        as_of = when(watched.as_of(now), now)
        text = f"Nobody watches since then. {connection.detail}".strip()
        return Calm(f"No incident up to {as_of}", text, "i-unplug")
    earlier = HistoryFilter(change=tuple(word.value for word in _JUDGED))
    if find_changes.find(watched.name, earlier, limit=1).changes:
        text = "Changes that an earlier version of Leaseboard stored have no cause."
        return Calm("No incident is known", f"{text} {_HOW}", "i-clock")
    unseen_times = unwatched_times(watched.name, since=began, until=now, now=now) if first else ()
    lost = sum(one.seconds for one in unseen_times)
    elections = sum(watched.store.counts().get(Kind.ELECTION, {}).values())
    if not elections:
        return Calm("No incident yet", f"No Lease here is an election. {_HOW}", "i-clock")
    unseen = f", but not for {age(lost)} of that time" if lost >= 1 else " without a break"
    text = f"{counted(elections, 'election')} watched{unseen}. {_HOW}"
    title = f"No incident since the watch began at {when(began, now)}"
    return Calm(title, text, *(("i-clock", "") if lost >= 1 else ("st-held", "is-held")))
