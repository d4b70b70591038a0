"""The one place where things are wired: per cluster a client, a store, a tracker; for all a
recorder and a publisher.

Lives on the server's event loop, from the ASGI lifespan's start to its end. Views read it from
their threads.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
import yaml
from django.conf import settings

from dashboard.clusters import ClusterSpec
from dashboard.config import Config
from dashboard.forgetting import Forgetting
from dashboard.live.page_reader import Drawings
from dashboard.live.publisher import KEPT_CHANGES, Publisher
from dashboard.memory import Leftovers, give_back, keep_what_is_loaded, share_one_heap
from dashboard.overrides import Overrides
from dashboard.watched import WatchedCluster
from leases.apiserver.serving import LeaseApiServer
from leases.demo.run import run_demo
from leases.history import checkpoint, queries
from leases.history.activity import Activity
from leases.history.recorder import Recorder, Source
from leases.kube.backoff import Backoff
from leases.kube.connect import connect
from leases.kube.reflector import reflect
from leases.tracking.remembered import read_remembered
from leases.tracking.store import Store
from leases.tracking.tracked import Update
from leases.tracking.tracker import Tracker
from leases.wire.events import Disconnected

logger = logging.getLogger(__name__)

FORGET_SECONDS = 3600.0
LOOK_SECONDS = 2.0
SWITCH_SECONDS = 0.001  # so long the writer of history may hold up the loop


def utc_now() -> datetime:
    """The clock of the process."""
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What `serve` was asked to do; see its help."""

    clusters: tuple[ClusterSpec, ...]
    data: Path
    host: str = "127.0.0.1"
    api_port: int = 0
    kubeconfig: tuple[Path, ...] = ()  # () is where kubectl looks
    demo: bool = False
    feature_gates: frozenset[str] = frozenset()
    retention_days: int = 90
    retention_rows: int = 5_000_000


class Runtime:
    """Everything that runs beside the pages."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.clusters = {spec.name: WatchedCluster(spec) for spec in options.clusters}
        self.publisher = Publisher({name: c.store for name, c in self.clusters.items()})
        self.drawings = Drawings()
        self.recorder = Recorder()
        for channel in self.publisher.channels.values():
            channel.problem = lambda: self.recorder.problem
        self.overrides = Overrides(self.recorder.in_thread)
        self.api: LeaseApiServer | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._writing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the embedded API where a cluster needs it, then watch every cluster."""
        keep_what_is_loaded()
        share_one_heap()
        sys.setswitchinterval(SWITCH_SECONDS)
        if any(cluster.embedded for cluster in self.clusters.values()):
            self.api = LeaseApiServer(
                data=self.options.data,
                host=self.options.host,
                port=self.options.api_port,
                feature_gates=self.options.feature_gates,
            )
            await self.api.start()
        for cluster in self.clusters.values():
            tracker = await self._prepare(cluster)
            self._tasks.append(asyncio.create_task(self._watch(cluster, tracker)))
            nodes = self.publisher.channels[cluster.name].nodes
            self._tasks.append(asyncio.create_task(nodes.follow(cluster)))
        self._writing = asyncio.create_task(self.recorder.run())
        self._tasks.append(asyncio.create_task(self.publisher.run()))
        self._tasks.append(asyncio.create_task(self._forget()))
        self._tasks.append(asyncio.create_task(self.overrides.run()))
        self._tasks.append(asyncio.create_task(self._look()))
        if self.options.demo and self.api is not None:
            token = _token_in(self.api.kubeconfig)
            self._tasks.append(asyncio.create_task(run_demo(url=self.api.url, token=token)))

    async def stop(self) -> None:
        """Stop watching, write what is left, stop the embedded API."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._writing is not None:
            await self.recorder.close(self._writing)
        for cluster in self.clusters.values():
            if cluster.client is not None:
                await cluster.client.close()
        if self.api is not None:
            await self.api.stop()

    def activity(self, cluster: str) -> Activity:
        """How much happened in one cluster in the last day."""
        return self.publisher.channels[cluster].activity

    async def _look(self) -> None:
        leftovers = Leftovers()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for cluster in self.clusters.values():
                await cluster.look_at_renewals(utc_now())
            lists = sum(cluster.tally.lists.total() for cluster in self.clusters.values())
            if leftovers.are_free(lists, waiting=self.recorder.waiting):
                await self.recorder.in_thread(give_back)

    async def _forget(self) -> None:
        """What is told of the last day goes with the hours, history when it is old or too long."""
        options = self.options
        forgetting = Forgetting(
            self.recorder, days=options.retention_days, rows=options.retention_rows
        )
        while True:
            for channel in self.publisher.channels.values():
                channel.activity.forget(utc_now())
            await forgetting.run(utc_now())
            await asyncio.sleep(FORGET_SECONDS)

    async def _prepare(self, cluster: WatchedCluster) -> Tracker:
        """Remember where an earlier run stopped, and let recorder and publisher follow."""
        store, in_thread = cluster.store, self.recorder.in_thread
        remembered = await in_thread(partial(_remember, store))
        recent = await in_thread(partial(queries.recent, cluster.name, KEPT_CHANGES))
        self.publisher.fill(cluster.name, recent)
        activity = self.activity(cluster.name)
        await in_thread(partial(activity.read, cluster.name, utc_now()))
        tracker = Tracker(store, [self._record, self.publisher.publish], utc_now)
        cluster.tally, cluster.untold = tracker.tally, tracker.untold
        if remembered is not None:
            tracker.resource_version = remembered.resource_version

        self.recorder.add(
            Source(
                cluster=cluster.name,
                state=store.get,
                encode=msgspec.json.encode,
                resource_version=lambda: tracker.resource_version,
                now=lambda: tracker.watched_until,
                listing=lambda: tracker.listing,
                renewed=lambda most: store.rounds.next(most, utc_now()),
            )
        )
        await self.overrides.follow(cluster.name, tracker)
        return tracker

    def _record(self, update: Update) -> None:
        if update.connection is not None:
            self.recorder.watches.tell(update.cluster, update.connection)
        self.recorder.record(
            cluster=update.cluster,
            changes=update.changes,
            changed=(*update.redraw, *update.removed),
        )

    async def _watch(self, cluster: WatchedCluster, tracker: Tracker) -> None:
        """Connect, then follow the cluster until cancelled; what fails is tried again."""
        backoff = Backoff()
        while cluster.client is None:
            try:
                cluster.client = await connect(
                    cluster.source, kubeconfig=self._kubeconfig_of(cluster)
                )
            except ValueError as error:
                tracker.handle(Disconnected(str(error)))
                await asyncio.sleep(backoff.delay())
        events = reflect(
            cluster.client,
            since=tracker.resource_version,
            backoff=backoff,
            known=cluster.store.marks,
        )
        async with aclosing(events):
            await tracker.run(events)

    def _kubeconfig_of(self, cluster: WatchedCluster) -> tuple[Path, ...]:
        if self.api is not None and cluster.embedded:
            return (self.api.kubeconfig,)
        return self.options.kubeconfig


def _remember(store: Store) -> checkpoint.Checkpoint | None:
    """Begin where an earlier run stopped."""
    found = checkpoint.load(store.cluster)
    if found is not None:
        store.restore(read_remembered(found.records), found.watched_until)
    return found


def _token_in(kubeconfig: Path) -> str:
    """The token of the embedded API's kubeconfig: the demo signs in as any client does."""
    token: str = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    return token


_options: Options | None = None
_running: Runtime | None = None


def configure(options: Options) -> None:
    """Say what `launch` is to start; `serve` does, from its command line."""
    global _options
    _options = options


async def launch() -> Runtime:
    """Start the process's one runtime."""
    install(Runtime(_options or _from_settings()))
    running = get()
    await running.start()
    return running


def _from_settings() -> Options:
    """For a process that another server started: as `serve --no-demo` without options."""
    config: Config = settings.LEASEBOARD
    return Options(
        clusters=config.clusters,
        data=config.data,
        kubeconfig=config.kubeconfig,
        retention_days=config.retention_days,
        retention_rows=config.retention_rows,
    )


def install(runtime: Runtime) -> None:
    """Make this the runtime that views and sockets see."""
    global _running
    _running = runtime


def get() -> Runtime:
    """The runtime of this process."""
    if _running is None:
        raise RuntimeError("Leaseboard is not running here: start it with manage.py serve.")
    return _running
