"""The one place where things are wired: the parts of the running process, and its lifespan.

Lives on the server's event loop, from the ASGI lifespan's start to its end. Views read it from
their threads.
"""

import asyncio
import ctypes
import gc
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.db import Error, connection

from dashboard.access import ended_rights, links, screens
from dashboard.access.ended_rights import RightsWatch
from dashboard.access.known_rights import KNOWN, WallRight
from dashboard.access.links import LinkUse
from dashboard.board import install_board
from dashboard.clock import process_clock
from dashboard.config import (
    EVERY_CLUSTER,
    ClusterLabel,
    ClusterSpec,
    Config,
    ConfigError,
    SecretsPlace,
    check_names,
    secrets_place,
)
from dashboard.live.publisher import ClusterHub, Publisher
from dashboard.live.shared_drawings import Drawings
from dashboard.serving.data_directory import (
    NewerDatabase,
    bound_connections,
    check_not_newer,
    close_connections,
)
from dashboard.serving.tasks.added_clusters import AddedClusters
from dashboard.serving.tasks.admin_writes import Deletions, DeletionsAtWork, resolve_unanswered
from dashboard.serving.tasks.clock_watch import ClockTrust, ClockWatch, set_by
from dashboard.serving.tasks.cluster_watch import (
    ClusterWatch,
    KindOverrides,
    Pause,
    start_cluster_tasks,
    start_publisher,
)
from dashboard.serving.tasks.history_upkeep import Forgetting, ReliabilityTotals
from dashboard.serving.tasks.incidents import Incidents
from dashboard.serving.tasks.notifications import Notifications
from dashboard.serving.tasks.secret_clusters import SecretClusters
from dashboard.serving.tasks.supervisor import (
    Supervisor,
    keep_lease_api,
    lease_api_failed,
    report_failures,
)
from dashboard.watched_cluster import LOOK_SECONDS, ByCluster, WatchedCluster
from leases.apiserver.http.port import CannotStart
from leases.apiserver.serving import LeaseApiServer
from leases.demo.run import run_demo
from leases.history.database import reach
from leases.history.recorder import Recorder
from leases.history.reliability import counted_until
from leases.kube.open_watch import Slices
from leases.private_files import InUse
from leases.tracking.shared_timer import SharedTimer
from leases.worker_threads import WorkerThreads

FORGET_SECONDS = 3600.0
ASKED = 5000  # Leases of one cluster whose renewals are compared with a doubtful clock
AGREES = timedelta(hours=1)
NOT_REACHABLE = (
    "History is not reachable: the database does not answer. Overview, Leases and wall show what "
    "this process knows, to whoever read lately; pages that are open stay open."
)
GARBAGE = 5_000  # objects made and not freed before the collector looks at them; 700 by default
# The longest that another thread holds up the loop. Over TLS it lets go of the GIL at each record,
# so at each event: with 0.001 one busy thread lets it read 900 events a second, of 10,000.
SWITCH_SECONDS = 0.0003


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `serve`; see its help."""

    clusters: tuple[ClusterSpec, ...]
    data: Path
    secrets: SecretsPlace | None = None  # where Secrets name more clusters
    host: str = "127.0.0.1"
    api_port: int = 0
    kubeconfig: tuple[Path, ...] = ()  # () is where kubectl looks
    demo: bool = False
    feature_gates: frozenset[str] = frozenset()
    labels: tuple[ClusterLabel, ...] = ()
    read_only: tuple[str, ...] = ()  # clusters, or EVERY_CLUSTER
    impersonate: bool = False
    abandoned_seconds: int = 3600
    retention_days: int = 90
    retention_rows: int = 5_000_000
    reliability_days: int = 1100


class Runtime:
    """Everything that runs beside the pages."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.clusters = ByCluster({spec.name: self._watched(spec) for spec in options.clusters})
        self._watches: dict[str, ClusterWatch] = {}
        self.publisher = Publisher({name: c.store for name, c in self.clusters.items()})
        self.feeds = self.publisher.hubs
        self.drawings = Drawings()
        self.recorder = Recorder()
        self.clock = ClockWatch(process_clock())
        self.timers = SharedTimer(self.clock.now)
        self.clock.on_jump.append(
            lambda jump: self.recorder.watches.clock_jumped(jump, f"{set_by(jump)}.")
        )
        self.supervisor = Supervisor()
        for hub in self.publisher.hubs.values():
            self._inform(hub)
        self.publisher.fleet.problem = self.problem
        report_failures(self.supervisor, "", self.publisher.fleet)
        self.overrides = KindOverrides(self.recorder.in_thread)
        self.rights = RightsWatch(known=KNOWN)
        process, in_thread = self.recorder.watches.process, self.recorder.in_thread
        self.deletions = ByCluster[Deletions]()
        self._deleting = DeletionsAtWork(in_thread)
        self.incidents = ByCluster[Incidents]()
        for cluster in self.clusters.values():
            self._equip(cluster)
        self.trust = ClockTrust(self.clock, in_thread, process, self._others_agree)
        self.notifications = Notifications(
            in_thread,
            self.clusters,
            process,
            self.clock.now,
            lambda: self.trust.trusted,
            lambda name: (one := self.clusters.get(name)) is not None and one.paused,
        )
        self.notifications.cared = self._tell_of_care
        self.reliability = ReliabilityTotals(
            self.clusters,
            self.recorder,
            self.clock,
            days=options.reliability_days,
            trusted=self.trust.look,
        )
        self.counts = self.reliability.times
        self.link_use = LinkUse(self.recorder.in_thread, self._open_walls)
        self.added = AddedClusters(self, data=options.data, in_thread=in_thread, now=self.clock.now)
        self.secrets = None if options.secrets is None else self._by_secrets(options.secrets)
        self.api: LeaseApiServer | None = None
        self.leaving = False  # the process is about to end
        self._writing: asyncio.Task[None] | None = None

    def _watched(self, spec: ClusterSpec) -> WatchedCluster:
        options = self.options
        return WatchedCluster(
            spec,
            abandoned_after=timedelta(seconds=options.abandoned_seconds),
            read_only=not {EVERY_CLUSTER, spec.name}.isdisjoint(options.read_only),
            impersonate=options.impersonate,
        )

    def _inform(self, hub: ClusterHub) -> None:
        """Let the hub show what goes wrong."""
        name = hub.store.cluster
        hub.labels = {one.key: one.value for one in self.options.labels if one.cluster == name}
        hub.problem = partial(self.problem, name)
        report_failures(self.supervisor, name, hub)
        hub.refused = partial(self.recorder.refused.lately, name)
        hub.unwritten = partial(self.recorder.waiting_of, name)
        hub.failing_receivers = lambda: self.notifications.failing
        hub.care = lambda: self.notifications.care

    def _tell_of_care(self, cluster: str) -> None:
        """Draw again what says who takes care of its incidents."""
        if hub := self.publisher.hubs.get(cluster):
            hub.incidents_moved()

    def _equip(self, cluster: WatchedCluster) -> None:
        """Make the parts that work for one cluster."""
        name, recorder, now = cluster.name, self.recorder, self.clock.now
        process, in_thread = recorder.watches.process, recorder.in_thread
        deletions = Deletions(
            cluster, process=process, in_thread=in_thread, clock=now, at_work=self._deleting
        )
        self.deletions.put(name, deletions)
        incidents = Incidents(cluster, self.publisher.hubs[name], recorder, now, self.clock.look)
        self.incidents.put(name, incidents)

    def _by_secrets(self, place: SecretsPlace) -> SecretClusters:
        return SecretClusters(
            place,
            kubeconfig=self.options.kubeconfig,
            data=self.options.data,
            taken=self.added,
            add=self.add_cluster,
            change=self.change_cluster,
            leave=self.leave_cluster,
        )

    async def add_cluster(self, spec: ClusterSpec, paused: Pause | None = None) -> None:
        """Watch one more cluster from now on, or show it as paused."""
        cluster = self._watched(spec)
        self._inform(self.publisher.add(cluster.store))
        self._equip(cluster)
        watch = await self._remember(cluster)
        if paused is None:
            self._start_cluster(cluster)
        else:
            watch.pause(paused)
            start_publisher(self.supervisor, self.publisher.hubs[cluster.name])
        self.clusters.put(spec.name, cluster)  # last, so that pages find all of its parts

    async def change_cluster(self, name: str) -> None:
        """Its address or credentials are others now."""
        client = self.clusters[name].client
        if client is not None:
            await client.configure_again()

    def label_cluster(self, name: str, labels: Mapping[str, str]) -> None:
        """Group and filter it by these labels."""
        self.publisher.hubs[name].labels = dict(labels)

    async def pause_cluster(self, name: str, paused: Pause) -> None:
        """Watch a cluster no longer, but show what is known of it."""
        cluster, hub = self.clusters[name], self.publisher.hubs[name]
        await self.supervisor.end(name)
        client, cluster.client = cluster.client, None
        if client is not None:
            await client.close()
        self._watches[name].pause(paused)
        start_publisher(self.supervisor, hub)

    async def resume_cluster(self, name: str) -> None:
        """Watch it again."""
        await self.supervisor.end(name)
        self._watches[name].resume()
        self._start_cluster(self.clusters[name])

    async def leave_cluster(self, name: str) -> None:
        """Watch a cluster no longer. What is in history stays there."""
        cluster = self.clusters[name]
        self.clusters.drop(name)
        await self.supervisor.end(name)
        self._watches.pop(name).leave()
        self.overrides.leave(name)
        self.publisher.remove(name)
        self.deletions.drop(name)
        self.incidents.drop(name)
        if cluster.client is not None:
            await cluster.client.close()
        gc.unfreeze()  # what it was made of can go: see give_memory_back

    async def start(self) -> None:
        """Start the embedded API where a cluster needs it, then watch every cluster."""
        gc.freeze()  # the collector skips what is loaded now: walking it would hold up the loop
        gc.set_threshold(GARBAGE)
        sys.setswitchinterval(SWITCH_SECONDS)
        if any(cluster.embedded for cluster in self.clusters.values()):
            self.api = LeaseApiServer(
                data=self.options.data,
                host=self.options.host,
                port=self.options.api_port,
                feature_gates=self.options.feature_gates,
                keep=keep_lease_api(self.supervisor),
                failed=lease_api_failed(self.supervisor),
            )
            await self.api.start()
        # No watch yet: beside a busy event loop each row that is read waits for the GIL.
        for cluster in self.clusters.values():
            await self._remember(cluster)
        await self.recorder.in_thread(links.know_links)
        await self.recorder.in_thread(screens.know_screens)
        for cluster in self.clusters.values():
            self._start_cluster(cluster)
        self._start_tasks()

    async def _remember(self, cluster: WatchedCluster) -> ClusterWatch:
        """Begin with what an earlier run knew of one cluster."""
        incidents = self.incidents[cluster.name]
        watch = ClusterWatch(
            cluster,
            recorder=self.recorder,
            publisher=self.publisher,
            incidents=incidents,
            clock=self.clock,
            timers=self.timers,
            kubeconfig=self._kubeconfig_of(cluster),
        )
        await watch.prepare()
        self._watches[cluster.name] = watch
        await self.overrides.follow(cluster.name, watch.tracker)
        return watch

    def _start_cluster(self, cluster: WatchedCluster) -> None:
        """Start the tasks of one cluster."""
        name, hub = cluster.name, self.publisher.hubs[cluster.name]
        start_publisher(self.supervisor, hub)
        start_cluster_tasks(
            self.supervisor,
            cluster,
            self._watches[name],
            hub=hub,
            deletions=self.deletions[name],
            incidents=self.incidents[name],
        )

    def _start_tasks(self) -> None:
        """Start the tasks that serve all clusters."""
        start, recorder = self.supervisor.start, self.recorder
        self._writing = start(
            "recorder",
            recorder.run,
            effect="History is not written; changes wait in memory.",
            may_end=lambda: recorder.closing,
        )
        start("clock", self.clock.run, effect="A jump of the clock is noticed late.")
        start("retention", self._forget, effect="Old history is not deleted.")
        start("reliability", self.reliability.run, effect="Reliability is not counted.")
        start(
            "overrides",
            self.overrides.run,
            effect="Kinds that admins set at another replica are not taken over.",
        )
        ended_rights.connect(self.rights.look_now)
        start("database", reach.run, effect="Pages wait for a database that does not answer.")
        start("rights", self.rights.run, effect="Open pages whose right has ended are not closed.")
        start(
            "audit",
            partial(resolve_unanswered, self.clusters, self.clock.now),
            effect="Open rows of the audit trail are not resolved.",
        )
        start("wall link use", self.link_use.run, effect="When wall links were used is not noted.")
        start("notifications", self.notifications.run, effect="Incidents are not notified.")
        effect = "Open pages of all clusters do not follow what happens."
        start("fleet", self.publisher.fleet.run, effect=effect)
        effect = "Freed memory is not given back to the system."
        start("memory", partial(give_memory_back, trim_of_malloc()), effect=effect)
        effect = "The renewals of Leases are not noted for their charts."
        start("renewals", self._look, effect=effect)
        effect = "Clusters that admins add, change, pause or remove are not followed."
        start("added clusters", self.added.run, effect=effect)
        if self.secrets is not None:
            effect = "Clusters that Secrets name are not followed."
            start("cluster secrets", self.secrets.run, effect=effect)
        if self.options.demo and self.api is not None:
            url, token = self.api.url, _token_in(self.api.kubeconfig)
            start(
                "demo",
                partial(run_demo, url=url, token=token),
                effect="The demo's Leases stand still.",
            )

    async def stop(self) -> None:
        """Stop watching, write what is left, stop the embedded API."""
        ended_rights.disconnect()
        await self.supervisor.stop()
        self.rights.close()
        if self._writing is not None:
            await self.recorder.close(self._writing)
        for cluster in self.clusters.values():
            if cluster.client is not None:
                await cluster.client.close()
        if self.api is not None:
            await self.api.stop()

    def _kubeconfig_of(self, cluster: WatchedCluster) -> tuple[Path, ...]:
        if self.api is not None and cluster.embedded:
            return (self.api.kubeconfig,)
        return self.options.kubeconfig

    def problem(self, cluster: str | None = None) -> str | None:
        """Return the warnings for the pages of one cluster, or of all, in sentences."""
        down = [problem.sentence for problem in self.supervisor.problems(cluster)]
        problems = (
            self.recorder.problem,
            NOT_REACHABLE if reach.error else self.rights.problem,
            self.clock.says,
            self.trust.says or self.counts.stalled,
            self.added.says,
            self.secrets.says if self.secrets else None,
            *down,
        )
        return " ".join(filter(None, problems)) or None

    def _others_agree(self, now: datetime) -> bool:
        """Whether a holder on another machine lately renewed by a clock that agrees with ours."""
        others = (one for one in self.clusters.values() if not one.embedded and one.synced)
        some = (tracked for one in others for tracked in islice(one.store.snapshot(), ASKED))
        times = (tracked.renew_time for tracked in some)
        return any(at is not None and abs(now - at) < AGREES for at in times)

    def _open_walls(self) -> set[WallRight]:
        return {right for right in self.rights.rights if isinstance(right, WallRight)}

    def leave(self) -> None:
        """Fail `/readyz` from now on."""
        self.leaving = True

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            slices = Slices()
            for cluster in self.clusters.values():
                await cluster.look_at_renewals(self.clock.now(), slices)

    async def _forget(self) -> None:
        """Forget the activity of more than a day ago, and history that is too old or too long."""
        options = self.options
        forgetting = Forgetting(
            self.recorder,
            days=options.retention_days,
            rows=options.retention_rows,
            trusted=self.trust.look,
            counted_until=counted_until,
        )
        while True:
            for hub in self.publisher.hubs.values():
                hub.activity.forget(self.clock.now())
            await self.reliability.counted.wait()
            await forgetting.run(self.clock.now())
            await asyncio.sleep(FORGET_SECONDS)


def _token_in(kubeconfig: Path) -> str:
    """The token of the embedded API's kubeconfig: the demo signs in as any client does."""
    token: str = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    return token


_options: Options | None = None


def configure(options: Options) -> None:
    """Say what `launch` is to start; `serve` does, from its command line."""
    global _options
    _options = options


async def launch() -> Runtime:
    """Start the process's one runtime."""
    running = Runtime(_options or _from_settings())
    install_board(running)
    await running.start()
    return running


def _from_settings() -> Options:
    """For a process that another server started: as `serve --no-demo` without options."""
    config: Config = settings.LEASEBOARD
    secrets = secrets_place(config)
    if secrets is None:
        check_names(config, config.clusters)
    return Options(
        clusters=config.clusters,
        secrets=secrets,
        data=config.data,
        kubeconfig=config.kubeconfig,
        labels=config.cluster_labels,
        read_only=config.read_only,
        impersonate=config.impersonate,
        abandoned_seconds=config.abandoned_seconds,
        retention_days=config.retention_days,
        retention_rows=config.retention_rows,
        reliability_days=config.reliability_days,
    )


logger = logging.getLogger(__name__)

GIVE_BACK_SECONDS = 60.0
# Of glibc's malloc.h. Left to itself it makes an arena for each thread, and puts ever larger pieces
# into them: both leave gaps between what is in use, half a MiB a minute with some pages open.
MALLOC_OPTIONS = {"M_MMAP_THRESHOLD": (-3, 128 * 1024), "M_ARENA_MAX": (-8, 1)}


def choose_memory() -> None:
    """Set how memory is got from the system, before a thread starts: it keeps the arena that it
    has. Other C libraries than glibc have no such options.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        for option, value in MALLOC_OPTIONS.values():
            library.mallopt(option, value)


def trim_of_malloc() -> Callable[[int], int] | None:
    """Return what gives free memory back to the system, if the C library has it."""
    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim


async def give_memory_back(trim: Callable[[int], int] | None) -> None:
    """Let the collector skip what lives long, and give back what is free: again and again, until
    cancelled.
    """
    thread, begins = WorkerThreads("memory", 1), True
    while True:
        await asyncio.sleep(GIVE_BACK_SECONDS)
        # The collector by itself walks all only every five minutes: until then circles of closed
        # pages and requests lie between what is in use.
        gc.collect()
        if begins or not gc.get_freeze_count():  # at first, and after a cluster left
            begins = False
            gc.freeze()
        if trim is not None:
            await thread.run(trim, 0)


Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


async def lifespan(_scope: Message, receive: Receive, send: Send) -> None:
    """Answer the server's two lifespan messages."""
    await receive()
    choose_memory()
    bound_connections()
    try:
        await WorkerThreads("start", 1).run(check_database)
        running = await launch()
    except (CannotStart, ConfigError, InUse, NewerDatabase, OSError) as error:
        logger.error("Leaseboard cannot start: %s", error)
        close_connections()
        await send({"type": "lifespan.startup.failed", "message": ""})
        return
    except Exception:
        logger.exception("Leaseboard cannot start")
        close_connections()
        await send({"type": "lifespan.startup.failed", "message": ""})
        return
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await running.stop()
    close_connections()
    await send({"type": "lifespan.shutdown.complete"})


def check_database() -> None:
    """Refuse a newer database; whether this one answers is seen later."""
    try:
        with suppress(Error):
            check_not_newer()
    finally:
        connection.close()
