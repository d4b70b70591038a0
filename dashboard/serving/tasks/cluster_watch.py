"""The watch of one cluster: its client, its tracker, and the recorder and publisher that follow."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from pathlib import Path

import msgspec

from dashboard.live.publisher import KEPT_CHANGES, Publisher
from dashboard.parts.kept.watched_cluster import WatchedCluster
from dashboard.serving.tasks.clock_watch import ClockWatch
from dashboard.serving.tasks.incidents import Incidents
from dashboard.serving.tasks.supervisor import Problem
from leases.domain.steady_clock import Jump
from leases.history.read import find_changes
from leases.history.refused_rows import recently_refused
from leases.history.write import checkpoint
from leases.history.write.recorder import Recorder, StateSource
from leases.kube.backoff import Backoff
from leases.kube.connect import connect
from leases.kube.reflector import reflect
from leases.tracking.restore_checkpoint import read_remembered
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.tracking.tracker import Tracker
from leases.wire.watch_events import Disconnected


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
        kubeconfig: tuple[Path, ...],
    ) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._publisher = publisher
        self._incidents = incidents
        self._clock = clock
        self._kubeconfig = kubeconfig

    async def prepare(self) -> None:
        """Remember where an earlier run stopped, and let recorder and publisher follow."""
        cluster, store, in_thread = self._cluster, self._cluster.store, self._recorder.in_thread
        remembered = await in_thread(partial(_remember, store))
        recent = await in_thread(partial(find_changes.recent, cluster.name, KEPT_CHANGES))
        self._publisher.fill(cluster.name, recent)
        activity = self._publisher.hubs[cluster.name].activity
        await in_thread(partial(activity.read, cluster.name, self._clock.now()))
        refused = await in_thread(partial(recently_refused, cluster.name, self._clock.now()))
        self._recorder.refused.fill(cluster.name, refused)
        # The recorder comes first: an incident is written after its changes.
        sinks = (self._record, self._publisher.publish, self._incidents.take)
        self.tracker = tracker = Tracker(store, sinks, self._clock.now, self._clock.look)
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
        )
        async with aclosing(events):
            await tracker.run(events)

    def died(self, problem: Problem) -> None:
        """The watch stopped on an unexpected error: what is known grows stale."""
        self.tracker.handle(Disconnected(problem.sentence))

    def _clock_jumped(self, jump: Jump) -> None:
        """Move all moments that are kept of the cluster, and write the states with the new ones."""
        name, store = self._cluster.name, self._cluster.store
        self.tracker.clock_jumped(jump)
        self._cluster.renewals.clock_jumped(jump)
        self._publisher.hubs[name].clock_jumped(jump)
        self._incidents.begins_anew = True
        self._recorder.record(cluster=name, changed=tuple(one.key for one in store.snapshot()))

    def _record(self, update: Update) -> None:
        if update.connection is not None:
            self._recorder.watches.record(update.cluster, update.connection)
        self._recorder.record(
            cluster=update.cluster,
            changes=update.changes,
            changed=(*update.redraw, *update.removed),
        )


def _remember(store: Store) -> checkpoint.Checkpoint | None:
    """Begin where an earlier run stopped."""
    found = checkpoint.load(store.cluster)
    if found is not None:
        store.restore(read_remembered(found.records), found.watched_until)
    return found
