"""The part of a ClusterHub that the reader of one page needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from dashboard.live.cluster_menu import ClusterMenu
from dashboard.live.figures import Figures
from dashboard.live.messages import Counts
from dashboard.live.move_log import MoveLog
from dashboard.live.shared_drawings import SharedRegions
from dashboard.pages.nodes.node_grid import NodeGrid
from dashboard.parts.kept.flapping_leases import FlappingLeases
from dashboard.parts.kept.node_book import Grouping
from leases.domain.changes.change import Change
from leases.history.read.hourly_activity import Activity
from leases.tracking.store import Store


class HubView(Protocol):
    store: Store
    activity: Activity
    shared: SharedRegions
    menu: ClusterMenu
    grids: dict[Grouping, NodeGrid]
    moves: MoveLog
    seq: int
    events_per_second: float
    clock_moves: list[float]
    incident_turn: int

    @property
    def problem(self) -> Callable[[], str | None]: ...
    @property
    def recent(self) -> deque[tuple[int, Change]]: ...
    @property
    def explained(self) -> deque[tuple[int, Change]]: ...
    @property
    def flappers(self) -> FlappingLeases: ...
    def counts(self, now: datetime) -> Counts: ...
    def figures(self) -> Figures: ...
    def is_own(self, feed: int) -> bool: ...
    def is_outdated(self, feed: int) -> bool: ...
