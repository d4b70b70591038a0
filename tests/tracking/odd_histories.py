"""Histories of writes that an API server lets through though nobody would do them on purpose."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import strategies as st

from leases.domain.change import Change
from leases.domain.lease import Lease
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update, read_remembered
from leases.wire.watch_decoding import Applied, Deleted, Listed, Renewed, WatchEvent
from tests.support.values.leases import lease

FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
EDGES = [
    FIRST,
    FIRST + timedelta(days=1),
    datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC),
    LAST - timedelta(days=1),
    LAST,
]
_EPOCH = datetime.fromtimestamp(0, UTC)
MARK = 7
MOST_TURNS = 40

moments = st.sampled_from(EDGES) | st.datetimes(timezones=st.just(UTC))
int32s = st.sampled_from([-(2**31), -1, 0, 1, 15, 2**31 - 1]) | st.integers(-(2**31), 2**31 - 1)
# Our own clock may be wrong by centuries, but it does not stand at an end of the calendar.
clocks = st.timedeltas(timedelta(days=366), timedelta(days=157_000)).map(_EPOCH.__add__)
steps = st.sampled_from([0.0, 0.3, 2.0, 16.0, 4000.0]) | st.floats(0, 1e9)
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "holder_identity": st.sampled_from([None, "", "x", "y", "odd"]),
    "lease_duration_seconds": st.none() | int32s,
    "acquire_time": st.none() | moments,
    "lease_transitions": st.none() | int32s,
    "strategy": st.sampled_from([None, "OldestEmulationVersion"]),
    "preferred_holder": st.sampled_from([None, "y"]),
}

# What happens, by what, at which time of our clock.
Step = tuple[str, WatchEvent | None, datetime]


@st.composite
def odd_histories(draw: st.DrawFn) -> list[Step]:
    """Writes of an odd Lease, mostly renewals, and of an ordinary one; lost connections, restarts
    with a list, leaps of our clock.
    """
    now = draw(clocks)
    odd = _renewed(lease("x", name="odd", uid="odd-1"), draw(moments), version=1)
    history: list[Step] = [("odd", Applied(odd, MARK), now)]
    for version in range(2, draw(st.integers(6, 30))):
        now += timedelta(seconds=draw(steps))
        what = draw(st.sampled_from(_WHAT))
        event: WatchEvent | None = None
        if what == "renewal":
            odd = _renewed(odd, draw(moments), version=version)
            event = Applied(odd, MARK)
            if draw(st.booleans()) and odd.spec.renew_time is not None:
                event = Renewed(MARK, version, odd.spec.renew_time, _line(odd))
        elif what in ("write", "new uid", "deletion"):
            odd = _written(draw, odd, version=version, uid=f"odd-{version}" * (what == "new uid"))
            event = Deleted(odd) if what == "deletion" else Applied(odd, MARK)
        elif what == "plain":
            event = Applied(_plain(version, now))
        elif what == "leap":
            now = draw(clocks)
        history.append((what, event, now))
    return history


_WHAT = (
    *["renewal"] * 12, *["write"] * 3, *["plain"] * 4, "new uid", "deletion", "lost", "restart",
    "leap",
)  # fmt: skip


def _renewed(odd: Lease, at: datetime, *, version: int) -> Lease:
    meta = msgspec.structs.replace(odd.metadata, resource_version=str(version))
    return Lease(meta, msgspec.structs.replace(odd.spec, renew_time=at))


def _written(draw: st.DrawFn, odd: Lease, *, version: int, uid: str) -> Lease:
    fields = draw(st.sets(st.sampled_from(sorted(_FIELDS)), min_size=1))
    changed = {name: draw(_FIELDS[name]) for name in sorted(fields)}
    renewed = draw(st.none() | moments)
    born = draw(st.none() | moments)
    meta = msgspec.structs.replace(
        odd.metadata,
        resource_version=str(version),
        uid=uid or odd.metadata.uid,
        creation_timestamp=born,
    )
    return Lease(meta, msgspec.structs.replace(odd.spec, renew_time=renewed, **changed))


def _plain(version: int, now: datetime) -> Lease:
    built = lease(("p", "q", None)[version % 7 % 3], version=version, name="plain", uid="plain-1")
    spec = msgspec.structs.replace(built.spec, renew_time=now, acquire_time=now)
    return Lease(built.metadata, spec)


def _line(written: Lease) -> bytes:
    return msgspec.json.encode({"type": "MODIFIED", "object": written})


class Follower:
    """A store with its restarts, and all its changes."""

    def __init__(self) -> None:
        self.store = Store("c")
        self.changes: list[Change] = []
        self._there: dict[str, Lease] = {}

    def follow(self, history: list[Step]) -> None:
        for number, (what, event, now) in enumerate(history, start=1):
            self._wake(now)
            if event is not None:
                self._note(event)
                self._keep(self.store.follow((event,), now))
            elif what == "lost":
                self.store.lost(now)
                self.store.resumed(now + timedelta(seconds=3))
            elif what == "restart":
                self._restart(number, now)
            self._wake(now)

    def _note(self, event: WatchEvent) -> None:
        if isinstance(event, Applied):
            self._there[event.lease.metadata.name] = event.lease
        elif isinstance(event, Deleted):
            self._there.pop(event.lease.metadata.name, None)
        elif isinstance(event, Renewed):
            before = self._there.get("odd")
            if before is not None:
                self._there["odd"] = _renewed(before, event.renew_time, version=event.version)

    def _restart(self, number: int, now: datetime) -> None:
        records = [msgspec.json.encode(state) for state in self.store.snapshot()]
        self.store = Store("c")
        self.store.restore(read_remembered(records), now)
        self._keep(self.store.replace(Listed(tuple(self._there.values()), str(number)), now))
        self.store.caught_up()

    def _wake(self, now: datetime) -> None:
        """The clock turns what is due, as the tracker's timer does."""
        for _ in range(MOST_TURNS):
            due = self.store.next_deadline()
            if due is None or due > now:
                return
            self._keep(self.store.turn(now))

    def _keep(self, update: Update | None) -> None:
        self.changes += update.changes if update else ()
