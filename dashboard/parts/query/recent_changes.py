"""The newest changes of a page's feed: from history, and those that are not written yet."""

from __future__ import annotations

from datetime import datetime, timedelta

from dashboard.board import running_board
from leases.domain.changes.change import Change
from leases.domain.changes.change_identity import identity
from leases.domain.lease import ObjectName
from leases.history.read import find_changes


def feed_reached(cluster: str) -> int:
    """The last `seq` of a cluster's feed."""
    return running_board().publisher.hubs[cluster].seq


_WRITTEN_WITHIN = timedelta(seconds=3)


def recent_changes(cluster: str, limit: int) -> tuple[int, list[Change]]:
    """The last `seq` of the feed, and the changes up to it, newest first."""
    seq, sent = running_board().publisher.recent(cluster)
    written = find_changes.recent(cluster, limit) if len(sent) < limit else []
    return seq, _merged(sent, _up_to(cluster, seq, written))[:limit]


def settled_seq(cluster: str, now: datetime) -> int:
    """The `seq` up to which history surely has the feed's changes."""
    reached, sent = running_board().publisher.hubs[cluster].newest()
    young = [seq for seq, change in sent if now - _WRITTEN_WITHIN < change.observed_at <= now]
    return min(young) - 1 if young else reached


def with_known_causes(cluster: str, written: list[Change]) -> list[Change]:
    """Changes of history with the causes that pages hear of moments before it has them."""
    known = running_board().publisher.hubs[cluster].explainable
    return [known.with_cause(change) for change in written]


def with_unwritten(cluster: str, written: list[Change]) -> tuple[int, list[Change]]:
    """The last `seq` of the feed, and the changes of history below those not written yet."""
    seq, sent = running_board().publisher.recent(cluster)
    newest = written[0].at if written else None
    fresh = [change for change in sent if newest is None or change.at >= newest]
    return seq, _merged(fresh, written)


def changes_of(cluster: str, key: ObjectName, limit: int) -> tuple[int, list[Change]]:
    """The last `seq` of the feed, and the newest changes of one Lease."""
    seq, sent = running_board().publisher.recent(cluster)
    mine = [
        change for change in sent if (change.namespace, change.name) == (key.namespace, key.name)
    ]
    written = find_changes.of_lease(cluster, key.namespace, key.name, limit)
    return seq, _merged(mine, _up_to(cluster, seq, written))[:limit]


def _up_to(cluster: str, seq: int, written: list[Change]) -> list[Change]:
    """Without the changes that the feed sends after `seq`, or the page would show them twice."""
    _, sent = running_board().publisher.hubs[cluster].newest()
    later = {_identity(change) for number, change in sent if number > seq}
    return [change for change in written if _identity(change) not in later]


def _identity(change: Change) -> tuple[str, str, str]:
    return change.namespace, change.name, identity(change)


def _merged(sent: list[Change], written: list[Change]) -> list[Change]:
    """All changes of both, each once, newest first; of two, the one whose cause is known.

    History may still have the cause of before.
    """
    once = {_identity(change): change for change in sent}
    for change in written:
        known = once.get(_identity(change))
        if known is None or known.incident is None:
            once[_identity(change)] = change
    return sorted(once.values(), key=lambda change: change.at, reverse=True)
