"""The Nodes page: all heartbeats in one node grid.

Slots are ordered by group and name. A new heartbeat is appended, a deleted one leaves its slot
empty. After some of both, the grid is ordered again as the next generation.
"""

import asyncio
import struct
import time
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby, islice
from typing import Any, get_args
from weakref import WeakKeyDictionary

import msgspec
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.board import running_board
from dashboard.feed import ClusterFeed, Failed, log_failure
from dashboard.lists import responses
from dashboard.lists.url_parameters import FILTERS, BadFilter, Parameter, UrlState, number, one_of
from dashboard.parts.formatting import age
from dashboard.parts.node_summary import group_lines, nodes_view
from dashboard.watched_cluster import Grouping, NodeBook, node_threads
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked, Update

# As static/js/field.js reads them.
PHASES = (Phase.HELD, Phase.LATE, Phase.EXPIRED, Phase.VACANT, Phase.UNTIMED)
CODES = {phase: code for code, phase in enumerate(PHASES)}
GONE = 5
WHOLE, CHANGES = 0, 1
OUT_OF_ORDER = 0.02  # share of slots that were added or emptied since the last order
AT_LEAST = 50
LATER = "Came later"
RETRY_SECONDS = 2.0  # after a failed order


class Layout(msgspec.Struct, frozen=True):
    """The slots of one generation: their names in order, and their groups."""

    generation: int
    keys: list[ObjectName]
    slots: dict[ObjectName, int]
    groups: list[tuple[str, int]]


class NodeGrid:
    """One cluster's grid in one grouping. Only the event loop writes it."""

    def __init__(
        self, store: Store, nodes: NodeBook, by: Grouping, failed: Failed = log_failure
    ) -> None:
        self._store, self._nodes, self._by, self._failed = store, nodes, by, failed
        self.layout: Layout | None = None
        self._phases = bytearray()
        self._log: deque[int] = deque()
        self._logged = 0  # all changes so far; the log keeps the last of them
        self._unordered = 0
        self._waiting: set[ObjectName] | None = None  # what changed while the order is made
        self._made_of = nodes.version
        self._not_before = 0.0  # monotonic seconds: when to try again after a failure
        self.making: asyncio.Task[None] | None = None

    @property
    def position(self) -> int:
        return self._logged

    def tick(self) -> None:
        """Make an order if there is none, if too much was added or removed, or for new groups."""
        regrouped = self._by != "none" and self._made_of != self._nodes.version
        many = self._unordered > max(AT_LEAST, OUT_OF_ORDER * len(self._phases))
        if self.making is not None or time.monotonic() < self._not_before:
            return
        if self.layout is None or many or regrouped:
            self._made_of = self._nodes.version
            self._waiting = set()
            self.making = asyncio.create_task(self._make())

    async def stop(self) -> None:
        if self.making is not None:
            self.making.cancel()
            await asyncio.gather(self.making, return_exceptions=True)

    def notice(self, update: Update) -> None:
        if update.listed:
            self._unordered = len(self._phases) + AT_LEAST + 1
            return
        moved = (*update.redraw, *update.removed)
        if self._waiting is not None:
            self._waiting.update(moved)
        if self.layout is not None:
            self._move(moved)

    def whole(self) -> bytes:
        """All phases after a header."""
        return self._header(WHOLE) + bytes(self._phases)

    def since(self, position: int) -> bytes | None:
        """The phases that changed since a position; None if none did."""
        new = self._logged - position
        if new <= 0:
            return None
        if new > len(self._log):
            return self.whole()
        slots = set(islice(reversed(self._log), new))
        pairs = [slot << 3 | self._phases[slot] for slot in slots]
        return self._header(CHANGES) + struct.pack(f"<{len(pairs)}I", *pairs)

    def _header(self, what: int) -> bytes:
        generation = self.layout.generation if self.layout else 0
        return struct.pack("<III", what, generation, len(self._phases))

    def _move(self, keys: Sequence[ObjectName] | set[ObjectName]) -> None:
        assert self.layout is not None  # noqa: S101 - for the type checker; callers look first
        slots, phases = self.layout.slots, self._phases
        for key in keys:
            known = self._store.get(key)
            slot = slots.get(key)
            if known is None or known.kind is not Kind.HEARTBEAT:
                code = GONE
            else:
                code = CODES[known.phase]
                if slot is None:
                    slot = self._append(key, self.layout)
            if slot is None or phases[slot] == code:
                continue
            self._unordered += code == GONE
            phases[slot] = code
            self._log.append(slot)
            self._logged += 1
        while len(self._log) > max(AT_LEAST, len(phases)):
            self._log.popleft()

    def _append(self, key: ObjectName, layout: Layout) -> int:
        slot = layout.slots[key] = len(self._phases)
        layout.keys.append(key)
        self._phases.append(GONE)
        self._unordered += 1
        label, number = layout.groups[-1] if layout.groups else ("", 0)
        if label == LATER:
            layout.groups[-1] = (LATER, number + 1)
        else:
            layout.groups.append((LATER, 1))
        return slot

    async def _make(self) -> None:
        """Order 130,000 heartbeats in a thread, then apply what changed meanwhile."""
        generation = self.layout.generation + 1 if self.layout else 1
        try:
            layout, phases = await node_threads.run(self._ordered, generation)
            self.layout, self._phases = layout, phases
            self._log.clear()
            self._logged += 1  # so every page gets the new order
            self._unordered = 0
            waiting, self._waiting = self._waiting, None
            self._move(waiting or set())
        except Exception as error:
            self._not_before = time.monotonic() + RETRY_SECONDS
            self._waiting = None
            self._made_of = -1
            self._failed("picture", error)
        finally:
            self.making = None

    def _ordered(self, generation: int) -> tuple[Layout, bytearray]:
        beats = list(self._store.select((Kind.HEARTBEAT,), PHASES))
        by, nodes = self._by, self._nodes
        rows = [(nodes.group(one.key.name, by), one) for one in beats]
        if by != "none":
            # Stable, so names stay in order; nodes of no known group come last.
            rows.sort(key=lambda row: (not row[0], row[0]))
        keys = [one.key for _, one in rows]
        groups = [(name, len(list(some))) for name, some in groupby(rows, key=lambda row: row[0])]
        slots = {key: slot for slot, key in enumerate(keys)}
        return Layout(generation, keys, slots, groups), bytearray(
            CODES[one.phase] for _, one in rows
        )


GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)


class NodesFilter(UrlState, msgspec.Struct, frozen=True):
    """`group` is "" for the usual grouping of the cluster."""

    PARAMETERS = {"group": Parameter("group", one_of, GROUPINGS)}
    group: str = ""


FILTERS["nodes"] = NodesFilter
MAX_CELLS = 256
SHARED = {"zone": "nodes zones", "pool": "nodes pools", "none": "nodes"}


_grids: WeakKeyDictionary[ClusterFeed, dict[Grouping, NodeGrid]] = WeakKeyDictionary()


def grids_of(feed: ClusterFeed) -> dict[Grouping, NodeGrid]:
    """The grids of one cluster that somebody looks at, by their grouping."""
    return _grids.setdefault(feed, {})


@require_safe
@viewer_required
def nodes(request: ClusterRequest, cluster: str) -> HttpResponse:
    """Counts, the worst nodes, groups and orphans; the grid comes over the page's socket."""
    hub = running_board().feeds[cluster]
    error, by = "", _usual_grouping(hub)
    try:
        by = _grouping(request, hub)
    except BadFilter as refused:
        error = str(refused)
    context: dict[str, Any] = {
        "view": nodes_view(hub, request.cluster.as_of(clock.now())),
        "by": by,
        "groupings": GROUPINGS,
        "lines": group_lines(hub, by),
        "shared": SHARED[by],
        "error": error,
    }
    return render(request, "nodes/index.html", context, status=400 if error else 200)


@require_safe
@viewer_required
def cells(request: ClusterRequest, cluster: str) -> HttpResponse:
    """The heartbeats in some slots of the grid: [namespace/name, last renewal in words] each."""
    hub = running_board().feeds[cluster]
    try:
        field = grids_of(hub).get(_grouping(request, hub))
        first = number(request.GET, "first", default=1, largest=10**9) - 1
        generation = number(request.GET, "generation", default=1, largest=10**9)
    except BadFilter as error:
        return responses.json({"error": str(error)}, status=400)
    layout = field.layout if isinstance(field, NodeGrid) else None
    if layout is None or layout.generation != generation:
        return responses.json({"error": "The picture is another by now."}, status=409)
    now = request.cluster.as_of(clock.now())
    keys = layout.keys[first : first + MAX_CELLS]
    said = [[str(key), _renewed(request.cluster.store.get(key), now)] for key in keys]
    return responses.json({"cells": said})


def _renewed(one: Tracked | None, now: datetime) -> str:
    return f"renewed {age((now - one.renewed_at).total_seconds())} ago" if one else "gone"


def _grouping(request: ClusterRequest, hub: ClusterFeed) -> Grouping:
    """Read `?group=`. Raises BadFilter."""
    wanted = NodesFilter.read(request.GET).group or _usual_grouping(hub)
    return next(by for by in GROUPINGS if by == wanted)


def _usual_grouping(hub: ClusterFeed) -> Grouping:
    return "zone" if any(hub.nodes.groups("zone")) else "none"
