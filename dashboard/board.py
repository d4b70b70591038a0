"""The running process as pages and sockets see it.

`dashboard.serving.runtime` builds it. Everything else calls `running_board`, so that no page
imports the room that connects everything.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

import msgspec

from dashboard.feed import ClusterFeed
from dashboard.watched_cluster import WatchedCluster
from leases.history.recorder import Recorder
from leases.tracking.store import Store


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A task that is down, or was a moment ago."""

    task: str
    cluster: str  # empty: it serves the whole process
    effect: str
    since: datetime
    error: str  # the name of the exception alone: its text may hold a secret

    @property
    def sentence(self) -> str:
        """What a page shows."""
        return (
            f"{self.effect} The task {self.task} stopped at {self.since:%H:%M:%S} UTC on an "
            f"unexpected error ({self.error}). It starts again by itself; the server's log says "
            "more."
        )


class TaskReport(Protocol):
    """The background tasks; `restarts` counts by task and cluster."""

    restarts: Counter[tuple[str, str]]

    def problems(self, cluster: str | None = None) -> Sequence[Problem]: ...
    def failed(self, task: str, error: BaseException, *, effect: str) -> object: ...


class WallClock(Protocol):
    """`jumps` since the start; `followed` of them are done, None while one is being followed."""

    @property
    def jumps(self) -> int: ...
    @property
    def followed(self) -> int | None: ...


class OpenRights(Protocol):
    """The rights of open sockets and long answers: `dashboard.access.ended_rights`."""

    def add(self, right: Any, end: Callable[[str], None]) -> Any: ...
    def remove(self, grant: Any) -> None: ...
    def look_now(self) -> None: ...
    def renewing(self, session: Any) -> AbstractContextManager[None]: ...


class LinkNotes(Protocol):
    """When wall links were used."""

    def note(self, right: Any) -> None: ...


class OverrideRefresh(Protocol):
    """What admins say of Leases, in the stores."""

    async def refresh(self) -> None: ...


class DeletionRuns(Protocol):
    """The deletions of many Leases of one cluster that this process runs."""

    process: str

    def wake(self) -> None: ...


class ClusterFollower(Protocol):
    """The clusters that admins added. `wrong` says by name why one is not watched."""

    @property
    def wrong(self) -> Mapping[str, str]: ...
    def wake(self) -> None: ...


class MessageCounts(Protocol):
    """Messages to receivers; `outcomes` counts attempts by sort of receiver and outcome."""

    outcomes: Counter[tuple[str, str]]


class CountReport(Protocol):
    """When reliability is counted. `says` why its totals are older than a minute; `stalled` that
    they do not go on.
    """

    @property
    def says(self) -> str | None: ...
    @property
    def stalled(self) -> str | None: ...


class Board(Protocol):
    """The parts of the running process. Any thread may read them."""

    @property
    def clusters(self) -> Mapping[str, WatchedCluster]: ...
    @property
    def feeds(self) -> Mapping[str, ClusterFeed]: ...
    @property
    def recorder(self) -> Recorder: ...
    @property
    def clock(self) -> WallClock: ...
    @property
    def supervisor(self) -> TaskReport: ...
    @property
    def overrides(self) -> OverrideRefresh: ...
    @property
    def rights(self) -> OpenRights: ...
    @property
    def deletions(self) -> Mapping[str, DeletionRuns]: ...
    @property
    def notifications(self) -> MessageCounts: ...
    @property
    def added(self) -> ClusterFollower: ...
    @property
    def link_use(self) -> LinkNotes: ...
    @property
    def counts(self) -> CountReport: ...

    @property
    def leaving(self) -> bool: ...

    def leave(self) -> None:
        """Fail `/readyz` from now on: the process is about to end."""

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


def running_feed(cluster: str) -> ClusterFeed | None:
    """What happens in a cluster that this process watches. None for others, and without a board."""
    return _running.feeds.get(cluster) if _running is not None else None
