"""The tasks of one cluster: its watch, its Nodes, and what admins say of its Leases."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec
from django.db import DatabaseError

from dashboard import clock
from dashboard.board import Problem
from dashboard.feed import KEPT_CHANGES
from dashboard.live.publisher import ClusterHub, Publisher
from dashboard.serving.tasks.admin_writes import Deletions
from dashboard.serving.tasks.clock_watch import ClockWatch
from dashboard.serving.tasks.incidents import Incidents
from dashboard.serving.tasks.supervisor import Supervisor
from dashboard.watched_cluster import NodeBook, WatchedCluster
from leases.domain.steady_clock import Jump
from leases.domain.watched_times import ConnectionState, Missing
from leases.history import find_changes, write_batch
from leases.history.overrides import load, load_marks
from leases.history.recorder import Recorder, StateSource
from leases.history.refused_rows import recently_refused
from leases.kube.backoff import Backoff
from leases.kube.connect import connect
from leases.kube.kube_objects import list_nodes
from leases.kube.lease_client import LeaseClient
from leases.kube.reflector import reflect
from leases.tracking.kind_overrides import NO_MARKS, Kinds, Marks
from leases.tracking.shared_timer import SharedTimer
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update, read_remembered
from leases.tracking.tracker import Tracker
from leases.wire.status import ApiError, Forbidden, NotFound
from leases.wire.watch_decoding import Disconnected

MAX_VERSION = 64  # characters


class Pause(msgspec.Struct, frozen=True):
    """Since when somebody wants a cluster not to be watched; `detail` is for the pages."""

    at: datetime
    detail: str


class ClusterWatch:
    """Follows one cluster: `prepare` once, then `run`, again after each death."""

    tracker: Tracker  # from `prepare` on

    def __init__(
        self,
        cluster: WatchedCluster,
        *,
        recorder: Recorder,
        publisher: Publisher,
        incidents: Incidents,
        clock: ClockWatch,
        timers: SharedTimer,
        kubeconfig: tuple[Path, ...],
    ) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._publisher = publisher
        self._incidents = incidents
        self._clock = clock
        self._timers = timers
        self._kubeconfig = kubeconfig
        self._live_again = asyncio.Event()

    async def prepare(self) -> None:
        """Remember where an earlier run stopped, and let recorder and publisher follow."""
        cluster, store, in_thread = self._cluster, self._cluster.store, self._recorder.in_thread
        remembered = await in_thread(partial(_remember, store))
        now = self._clock.now()
        if remembered is not None and remembered.watched_until > now:
            # An earlier run had a clock that was ahead: as if it was set back now.
            store.clock_jumped(Jump(remembered.watched_until, now))
        recent = await in_thread(partial(find_changes.recent, cluster.name, KEPT_CHANGES))
        self._publisher.fill(cluster.name, recent)
        activity = self._publisher.hubs[cluster.name].activity
        await in_thread(partial(activity.read, cluster.name, self._clock.now()))
        refused = await in_thread(partial(recently_refused, cluster.name, self._clock.now()))
        self._recorder.refused.fill(cluster.name, refused)
        # The recorder comes first: an incident is written after its changes.
        sinks = (self._record, self._publisher.publish, self._incidents.take)
        self.tracker = tracker = Tracker(
            store, sinks, self._clock.now, self._clock.look, self._timers
        )
        self._clock.on_jump.append(self._clock_jumped)
        self._clock.on_sleep.append(tracker.stood_still)
        cluster.counters, cluster.unprocessed_seconds = (
            tracker.counters,
            tracker.unprocessed_seconds,
        )
        if remembered is not None:
            tracker.resource_version = remembered.resource_version
        self._recorder.add(
            StateSource(
                cluster=cluster.name,
                state=store.understood,
                encode=msgspec.json.encode,
                names=lambda: [tracked.key for tracked in store.snapshot()],
                resource_version=lambda: tracker.resource_version,
                now=lambda: tracker.watched_until,
                listing=lambda: tracker.listing,
                size=store.size,
                renewed=lambda most: store.checkpoint_rotation.next(most, self._clock.now()),
            )
        )
        await self._incidents.restore(None if remembered is None else remembered.watched_until)

    async def run(self) -> None:
        """Connect, then follow the cluster until cancelled; what fails is tried again."""
        cluster, tracker, backoff = self._cluster, self.tracker, Backoff()
        while cluster.client is None:
            try:
                client = await connect(cluster.source, kubeconfig=self._kubeconfig)
                client.read_only = cluster.read_only
                cluster.client = client
            except ValueError as error:
                tracker.handle(Disconnected(str(error)))
                await asyncio.sleep(backoff.delay())
        events = reflect(
            cluster.client,
            since=tracker.resource_version,
            resume=cluster.synced,
            backoff=backoff,
            known=cluster.store.fingerprints,
            idle=lambda: cluster.store.next_deadline() is None,
        )
        async with aclosing(events):
            await tracker.run(events)

    async def read_version(self) -> None:
        """Ask what runs there each time the watch is live again, until cancelled."""
        cluster, hub = self._cluster, self._publisher.hubs[self._cluster.name]
        while True:
            await self._live_again.wait()
            try:
                hub.server_version = (await cluster.writer.server_version())[:MAX_VERSION]
            except ApiError as error:
                logger.info("%s does not tell its version: %s", cluster.name, error)
                hub.server_version = ""
            self._live_again.clear()

    def died(self, problem: Problem) -> None:
        """The watch stopped on an unexpected error: what is known grows stale."""
        self.tracker.handle(Disconnected(problem.sentence))

    def pause(self, paused: Pause) -> None:
        """Its tasks have ended until `resume`: nothing is known of the time from now on."""
        self.tracker.handle(Disconnected(paused.detail, paused_at=paused.at))

    def resume(self) -> None:
        """Its tasks begin again."""
        self.tracker.handle(Disconnected(""))

    def leave(self) -> None:
        """The cluster is watched no longer; its tasks have ended."""
        self._clock.on_jump.remove(self._clock_jumped)
        self._clock.on_sleep.remove(self.tracker.stood_still)
        self._recorder.remove(self._cluster.name)

    def _clock_jumped(self, jump: Jump) -> None:
        """Move all moments that are kept of the cluster, and write the states with the new ones."""
        name, store = self._cluster.name, self._cluster.store
        self.tracker.clock_jumped(jump)
        self._cluster.renewals.clock_jumped(jump)
        self._publisher.hubs[name].clock_jumped(jump)
        self._incidents.begin_anew()
        self._recorder.record(cluster=name, changed=tuple(one.key for one in store.snapshot()))

    def _record(self, update: Update) -> None:
        missed = update.missed
        if missed is not None and missed.why is Missing.STOOD_STILL and missed.since is not None:
            self._recorder.watches.stood_still(update.cluster, missed.since, missed.until)
        if update.connection is not None:
            self._recorder.watches.record(update.cluster, update.connection)
            if update.connection.state is ConnectionState.LIVE:
                self._live_again.set()
        self._recorder.record(
            cluster=update.cluster,
            changes=update.changes,
            changed=(*update.redraw, *update.removed),
        )


def _remember(store: Store) -> write_batch.Checkpoint | None:
    """Begin where an earlier run stopped."""
    found = write_batch.load(store.cluster)
    if found is not None:
        store.restore(read_remembered(found.records), found.watched_until)
    return found


logger = logging.getLogger(__name__)

READ_EVERY = 60.0  # seconds; a list that takes long is read less often
NONE_EVERY = 5.0  # while there are no Nodes: kubelets may be about to register
SHARE = 0.02  # of the time that may be spent on reading
REFUSED_EVERY = 600.0


async def read_nodes(cluster: WatchedCluster, book: NodeBook) -> None:
    """Read them into the book, until cancelled."""
    while True:
        started = time.monotonic()
        wait = 1.0
        if cluster.client is not None:
            wait = await _read(cluster.name, cluster.client, book)
        took = time.monotonic() - started
        await asyncio.sleep(max(wait, took / SHARE))


async def _read(cluster: str, client: LeaseClient, book: NodeBook) -> float:
    """Return the seconds until the next reading."""
    began = clock.now()
    try:
        found = await list_nodes(client)
    except Forbidden:
        book.problem = "Leaseboard may not list Nodes here: no zones, no readiness."
        return REFUSED_EVERY
    except NotFound:
        book.problem = f"{cluster} serves no Nodes, so no zones and no readiness."
        return REFUSED_EVERY
    except ApiError as error:
        logger.info("%s: Nodes could not be read: %s", cluster, error)
        book.problem = f"The Nodes could not be read: {client.advise(error)}"
        return READ_EVERY
    if not found:
        problem = f"{cluster} has no Nodes, so no zones and no readiness."
        await book.replace((), None, problem)
        return NONE_EVERY
    await book.replace(found, began, "")
    return READ_EVERY


def start_publisher(supervisor: Supervisor, hub: ClusterHub) -> None:
    """What serves open pages of a cluster, also while it is paused."""
    name = hub.store.cluster
    effect = f"Open pages of {name} do not follow what happens."
    supervisor.start("publisher", hub.run, effect=effect, cluster=name)


def start_cluster_tasks(
    supervisor: Supervisor,
    cluster: WatchedCluster,
    watch: ClusterWatch,
    *,
    hub: ClusterHub,
    deletions: Deletions,
    incidents: Incidents,
) -> None:
    start, name = partial(supervisor.start, cluster=cluster.name), cluster.name
    start("watch", watch.run, effect=f"The Leases of {name} are not watched.", on_death=watch.died)
    read = partial(read_nodes, cluster, hub.nodes)
    start("nodes", read, effect=f"The Nodes of {name} are not read.")
    start("version", watch.read_version, effect=f"The version of {name} is not read.")
    start(
        "deletions",
        deletions.run,
        effect=f"Deletions of many Leases of {name} are interrupted.",
    )
    start(
        "incidents",
        incidents.run,
        effect=f"Changes of {name} get no cause, and its incidents stand still.",
    )
    start(
        "evidence",
        incidents.look_up,
        effect=f"Pods, Nodes and Events of {name} are not asked for the causes of changes.",
    )


LOOK_SECONDS = 5.0  # until a replica knows what was said at another

Overrides = tuple[Mapping[str, Kinds], Mapping[str, Marks]]  # by cluster


class KindOverrides:
    """Of all clusters of the process."""

    def __init__(
        self, in_thread: Callable[[Callable[[], Overrides]], Awaitable[Overrides]]
    ) -> None:
        self._in_thread = in_thread
        self._trackers: dict[str, Tracker] = {}
        self._told: dict[str, tuple[Kinds, Marks]] = {}  # what each tracker goes by

    async def follow(self, cluster: str, tracker: Tracker) -> None:
        """Begin with what is stored of one cluster."""
        self._trackers[cluster] = tracker
        self._told.pop(cluster, None)
        await self.refresh(cluster)

    def leave(self, cluster: str) -> None:
        """The cluster is watched no longer."""
        self._trackers.pop(cluster, None)
        self._told.pop(cluster, None)

    async def refresh(self, only: str = "") -> None:
        """Take over what is stored now. One look at the database serves all clusters."""
        kinds, marks = await self._in_thread(_load)
        for cluster, tracker in self._trackers.items():
            said = kinds.get(cluster, {}), marks.get(cluster, NO_MARKS)
            if only in ("", cluster) and self._told.get(cluster) != said:
                tracker.set_overrides(*said)
                self._told[cluster] = said

    async def run(self) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for tracker in self._trackers.values():
                tracker.settle_kinds()
            try:
                await self.refresh()
            except DatabaseError as error:
                logger.warning("The kinds that admins set cannot be read just now: %s", error)


def _load() -> Overrides:
    return load(), load_marks()
