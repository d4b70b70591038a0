"""A board that lived through an outage, a restart, a deletion, a re-creation and a clock jump.

The clock is moved by hand, so the same story is told each time. Its parts are those of the running
process: tracker, recorder, hub, reliability and SQLite. At the end the clock stands still.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from dashboard import clock
from dashboard.board import install_board
from dashboard.config import ClusterSpec
from dashboard.serving.runtime import Options, Runtime
from dashboard.serving.tasks.cluster_watch import ClusterWatch
from leases.domain.lease import Lease, LeaseSpec, ObjectMeta, ObjectName
from leases.domain.steady_clock import SteadyClock
from leases.kube.cluster_source import ClusterSource, SourceKind
from leases.tracking.tracker import Tracker
from leases.wire.watch_decoding import Applied, Connected, Deleted, Disconnected, Listed

CLUSTER = "a"
BEGAN = datetime(2026, 11, 23, 22, 40, tzinfo=UTC)
ENDED = datetime(2026, 11, 23, 23, 30, tzinfo=UTC)
MIDNIGHT = datetime(2026, 11, 23, tzinfo=UTC)
LEASES = 130
STEP = 1.5  # seconds; after 2 s without a look the tracker takes it that the process stood still
RENEWED_EVERY = 4.5  # seconds
REVIEWED_EVERY = 12.0  # seconds
DURATION = 15
ACTORS = (
    "dies", "recovers", "retaken", "handed-over", "robbed", "made-anew", "in-outage",
    "lost-in-outage", "released", "removed", "flaps", "over-restart", "over-jump", "made-often",
)  # fmt: skip
QUIET = 40_000  # leaseDurationSeconds of the Leases to which nothing happens


class Evening:
    """One cluster, its board, and the clock of both. Seconds are those since BEGAN."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._passed = 0.0
        self._ahead = 0.0  # by how much the wall clock was set
        self._version = 1
        self._there: dict[ObjectName, Lease] = {}
        self._renewing: set[ObjectName] = set()
        self._live = False
        self._uids = 0
        self._renewed_at = self._reviewed_at = 0.0
        self.runtime: Runtime
        self._tracker: Tracker
        self._before = clock.use(
            SteadyClock(
                wall=lambda: self._ns(self._passed + self._ahead),
                passed=lambda: self._ns(self._passed),
            )
        )

    def _ns(self, seconds: float) -> int:
        return int(BEGAN.timestamp()) * 10**9 + round(seconds * 1e6) * 1000

    def close(self) -> None:
        clock.use(self._before)
        install_board(None)

    async def start(self) -> None:
        """Start a process that watches, and read the list."""
        specs = (ClusterSpec(CLUSTER, ClusterSource(SourceKind.IN_CLUSTER)),)
        self.runtime = one = Runtime(Options(clusters=specs, data=self._data))
        install_board(one)
        watch = ClusterWatch(
            one.clusters[CLUSTER],
            recorder=one.recorder,
            publisher=one.publisher,
            incidents=one.incidents[CLUSTER],
            clock=one.clock,
            timers=one.timers,
            kubeconfig=(),
        )
        await watch.prepare()
        await one.overrides.follow(CLUSTER, watch.tracker)
        self._tracker = watch.tracker
        self._connect()

    async def stop(self) -> None:
        """As on SIGTERM: write what is left."""
        self._live = False
        self._tracker.stop()
        recorder = self.runtime.recorder
        await recorder.close(asyncio.create_task(recorder.run()))

    async def write(self) -> None:
        """Let history and the totals of reliability reach the present."""
        await self.runtime.recorder.flush()
        await self.runtime.reliability.count(clock.now())

    def cut(self) -> None:
        self._tracker.handle(Disconnected("The connection was lost."))
        self._live = False

    def reconnect(self) -> None:
        self._connect()

    def _connect(self) -> None:
        self._tracker.handle(Listed(tuple(self._there.values()), str(self._version)))
        self._tracker.handle(Connected())
        self._live = True

    def set_clock(self, seconds: float) -> None:
        self._ahead += seconds
        self.runtime.clock.look()

    async def to(self, seconds: float) -> None:
        """Let the time come so far; those that renew do so, and every deadline is met."""
        while self._passed < seconds:
            self._passed = min(seconds, self._passed + STEP)
            if self._passed - self._renewed_at >= RENEWED_EVERY:
                self._renewed_at = self._passed
                for key in sorted(self._renewing):
                    self._put(key, renew_time=self._wall())
            if self._live:
                self._tracker.tick()
            if self._passed - self._reviewed_at >= REVIEWED_EVERY and hasattr(self, "runtime"):
                self._reviewed_at = self._passed
                await self._review()

    async def _review(self) -> None:
        """Let the causes of what happened be found, as their task does."""
        task, now = self.runtime.incidents[CLUSTER], clock.now()
        await task._read_updates()
        news, _, _ = task._review(now)
        task._report(news, now)

    def _wall(self) -> datetime:
        return BEGAN + timedelta(seconds=self._passed + self._ahead)

    def take(self, name: str, holder: str, *, duration: int = DURATION) -> None:
        """Somebody takes a Lease, and renews it from now on."""
        key = ObjectName("work", name)
        now = self._wall()
        number = 0
        if (known := self._there.get(key)) is not None:
            number = (known.spec.lease_transitions or 0) + 1
        if duration == DURATION:
            self._renewing.add(key)
        self._put(
            key,
            holder_identity=holder,
            lease_duration_seconds=duration,
            acquire_time=now,
            renew_time=now,
            lease_transitions=number,
        )

    def fall_silent(self, name: str) -> None:
        self._renewing.discard(ObjectName("work", name))

    def renew(self, name: str) -> None:
        key = ObjectName("work", name)
        self._renewing.add(key)
        self._put(key, renew_time=self._wall())

    def release(self, name: str) -> None:
        key = ObjectName("work", name)
        self._renewing.discard(key)
        self._put(key, holder_identity="", lease_duration_seconds=1, renew_time=self._wall())

    def create_vacant(self, name: str) -> None:
        self._put(ObjectName("work", name), lease_duration_seconds=DURATION, lease_transitions=0)

    def delete(self, name: str) -> None:
        key = ObjectName("work", name)
        self._renewing.discard(key)
        self._version += 1
        gone = self._there.pop(key)
        meta = msgspec.structs.replace(gone.metadata, resource_version=str(self._version))
        if self._live:
            self._tracker.handle(Deleted(msgspec.structs.replace(gone, metadata=meta)))

    def _put(self, key: ObjectName, **spec: object) -> None:
        self._version += 1
        known = self._there.get(key)
        if known is None:
            self._uids += 1
            meta = ObjectMeta(
                name=key.name,
                namespace=key.namespace,
                uid=f"uid-{self._uids}",
                creation_timestamp=self._wall(),
            )
            known = Lease(meta, LeaseSpec())
        lease = Lease(
            msgspec.structs.replace(known.metadata, resource_version=str(self._version)),
            msgspec.structs.replace(known.spec, **spec),
        )
        self._there[key] = lease
        if self._live:
            self._tracker.handle(Applied(lease))


def tell(data: Path) -> Evening:
    """Tell the whole story; the clock stands still at ENDED. `close` the answer."""
    evening = Evening(data)
    asyncio.run(_tell(evening))
    return evening


async def _tell(evening: Evening) -> None:
    for number in range(LEASES - 15):
        evening.take(f"quiet-{number:03}", f"pod-{number % 7}", duration=QUIET)
    for name in ACTORS:
        evening.take(name, f"{name}-1")
    evening.create_vacant("never-held")
    await evening.to(3.0)
    await evening.start()
    await evening.to(60.3)
    evening.fall_silent("dies")
    evening.fall_silent("recovers")
    await evening.to(90.55)
    evening.release("retaken")
    evening.release("handed-over")
    await evening.to(96.25)
    evening.take("retaken", "retaken-1")
    evening.take("handed-over", "handed-over-2")
    await evening.to(111.85)
    evening.take("dies", "dies-2")
    evening.renew("recovers")
    evening.take("robbed", "robbed-2")
    await evening.to(130.05)
    evening.delete("made-anew")
    await evening.to(130.45)
    evening.take("made-anew", "made-anew-2")
    await evening.write()
    evening.fall_silent("in-outage")  # it expires before the outage, and is taken in it
    await evening.to(180.15)
    evening.cut()
    await evening.to(190.35)
    evening.fall_silent("lost-in-outage")
    await evening.to(300.75)
    evening.take("in-outage", "in-outage-2")
    evening.take("lost-in-outage", "lost-in-outage-2")
    await evening.to(480.95)
    evening.reconnect()
    await evening.to(700.15)
    evening.delete("removed")
    evening.fall_silent("over-restart")
    await evening.to(760.25)
    await evening.stop()
    await evening.to(1060.65)
    evening.take("over-restart", "over-restart-2")
    await evening.start()
    await evening.to(1300.45)
    evening.fall_silent("over-jump")
    await evening.to(1330.15)
    evening.set_clock(7.0)
    await evening.to(1345.35)
    evening.take("over-jump", "over-jump-2")
    for number in range(8):
        await evening.to(1800.25 + 40 * number)
        evening.release("flaps")
        await evening.to(1803.65 + 40 * number)
        evening.take("flaps", f"flaps-{number % 3}")
    await _make_anew_and_anew(evening)
    await evening.to(2500.05)
    evening.release("released")
    await evening.to((ENDED - BEGAN).total_seconds() - 7.0)
    await evening.write()


async def _make_anew_and_anew(evening: Evening) -> None:
    """By another holder, by the one before, by it again, and by a third one."""
    for number, holder in enumerate("2113"):
        await evening.to(2200.25 + 20 * number)
        evening.delete("made-often")
        await evening.to(2202.45 + 20 * number)
        evening.take("made-often", f"made-often-{holder}")
