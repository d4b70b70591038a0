"""The running process as pages and sockets see it.

`dashboard.serving.runtime` builds it. Everything else calls `running_board`, so that no page
imports the room that connects everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dashboard.access.links import LinkUse
    from dashboard.access.rights_watch import RightsWatch
    from dashboard.live.publisher import Publisher
    from dashboard.live.shared_drawings import Drawings
    from dashboard.parts.watched_cluster import WatchedCluster
    from dashboard.serving.tasks.admin_writes import Deletions
    from dashboard.serving.tasks.clock_watch import ClockWatch
    from dashboard.serving.tasks.cluster_watch import KindOverrides
    from dashboard.serving.tasks.notifications import Notifications
    from dashboard.serving.tasks.supervisor import Supervisor
    from leases.history.activity import Activity
    from leases.history.recorder import Recorder
    from leases.tracking.store import Store


class Board(Protocol):
    """The parts of the running process. Any thread may read them."""

    @property
    def clusters(self) -> Mapping[str, WatchedCluster]: ...
    @property
    def publisher(self) -> Publisher: ...
    @property
    def drawings(self) -> Drawings: ...
    @property
    def recorder(self) -> Recorder: ...
    @property
    def clock(self) -> ClockWatch: ...
    @property
    def supervisor(self) -> Supervisor: ...
    @property
    def overrides(self) -> KindOverrides: ...
    @property
    def rights(self) -> RightsWatch: ...
    @property
    def deletions(self) -> Mapping[str, Deletions]: ...
    @property
    def notifications(self) -> Notifications: ...
    @property
    def link_use(self) -> LinkUse: ...

    @property
    def leaving(self) -> bool: ...

    def leave(self) -> None:
        """Fail `/readyz` from now on: the process is about to end."""

    def activity(self, cluster: str) -> Activity:
        """The changes of one cluster in the last day, counted by hour."""

    def problem(self, cluster: str | None = None) -> str | None:
        """Sentences about what does not work now: for one cluster's pages, or for all."""


_running: Board | None = None


def install_board(board: Board | None) -> None:
    """Make this the board that views and sockets see; None removes it."""
    global _running
    _running = board


def running_board() -> Board:
    """The running process. Raises RuntimeError when Leaseboard was not started."""
    if _running is None:
        raise RuntimeError("Leaseboard is not running here: start it with manage.py serve.")
    return _running


def running_store(cluster: str) -> Store | None:
    """The Leases of a cluster that this process watches. None for others, and without a board."""
    watched = _running.clusters.get(cluster) if _running is not None else None
    return watched.store if watched is not None else None
