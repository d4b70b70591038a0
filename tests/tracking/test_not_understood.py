"""A write that cannot be followed is skipped, its Lease shown as not understood."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import Phase
from leases.tracking import cluster_state, lease_index, observation
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.tracking.tracker import Tracker
from leases.wire.renewal_lines import Reader
from leases.wire.watch_decoding import (
    Applied,
    Arrived,
    Bookmark,
    Connected,
    Deleted,
    Listed,
    ListPage,
    Replayed,
    Unreadable,
)
from tests.support.values.leases import NOON, after, lease

ODD = ObjectName("default", "odd")
NAMES = ("a", "odd", "z")
GARBAGE = Unreadable(ODD, "It cannot be read: no text.", "uid-odd", "9")


def one(name: str, holder: str | None = "x", *, version: int, **given: Any) -> Lease:
    return lease(holder, name=name, uid=f"uid-{name}", version=version, **given)


def changes(*updates: Update | None) -> list[tuple[str, str, str | None, bool]]:
    return [
        (change.name, change.change.value, change.holder, change.inferred)
        for update in updates
        if update is not None
        for change in update.changes
    ]


@pytest.fixture
def store() -> Store:
    made = Store("c")
    listed = tuple(one(name, version=1) for name in NAMES)
    made.replace(Listed(listed, "1"), NOON)
    return made


FaultAt = Callable[[str], None]


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultAt]:
    """Makes one step of following fail for the odd Lease: before, amid or after what it does."""

    def put(place: str) -> None:
        where: Any
        match place:
            case "next_sight" | "first_sight" | "turned" | "listed_renewed":
                where, name = cluster_state, place
            case "compare" | "phase_of":
                where, name = observation, place
            case "_arm":
                where, name = cluster_state.ClusterState, place
            case _:
                where, name = lease_index.LeaseIndex, place
        real = getattr(where, name)

        def fails(*given: Any, **named: Any) -> Any:
            done = real(*given, **named)
            if any("odd" in str(value) for value in given):
                raise KeyError(place)
            return done

        monkeypatch.setattr(where, name, fails)

    yield put
    monkeypatch.undo()


@pytest.mark.parametrize("place", ["next_sight", "compare", "_arm"])
def test_one_failing_event_of_a_reading_holds_up_no_other(
    store: Store, fault: FaultAt, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(place)
    written = [Applied(one(name, "y", version=2 + n)) for n, name in enumerate(NAMES)]
    update = store.follow([*written, Bookmark("9")], after(5))
    assert changes(update) == [("a", "replaced", "y", False), ("z", "replaced", "y", False)]
    assert update is not None
    (skipped,) = update.skipped
    assert (skipped.key, type(skipped.error)) == (ODD, KeyError)
    shown = store.get(ODD)
    assert shown is not None
    assert shown.phase is Phase.UNTIMED
    assert shown.holder == "x"
    reported = shown.lasting.not_understood
    assert reported is not None
    assert (reported.since, reported.reason) == (after(5), "Leaseboard failed on it (KeyError).")
    assert [known.key for known in store.not_understood()] == [ODD]
    assert sum(sum(phases.values()) for phases in store.counts().values()) == 3

    assert store.follow(written, after(6)) is None, "nothing is reported or tried twice"
    assert sorted(changes(store.turn(after(600)))) == [
        ("a", "expired", "y", False),
        ("z", "expired", "y", False),
    ]

    monkeypatch.undo()
    update = store.follow([Applied(one("odd", "w", version=20, renewed=600))], after(601))
    assert changes(update) == [("odd", "taken_over", "w", True)]
    assert store.not_understood() == []
    known = store.get(ODD)
    assert known is not None
    assert (known.phase, known.lasting.not_understood) == (Phase.HELD, None)


def test_the_next_renewal_that_can_be_followed_clears_it(store: Store) -> None:
    store.follow([GARBAGE], after(5))
    update = store.follow([Applied(one("odd", version=10, renewed=6))], after(6))
    assert changes(update) == []
    known = store.get(ODD)
    assert known is not None
    assert (known.phase, known.holder) == (Phase.HELD, "x")
    assert sorted(changes(store.turn(after(22)))) == [
        (name, "expired", "x", False) for name in NAMES
    ]


def test_a_lease_never_understood_is_there_and_created_once_it_is(store: Store) -> None:
    key = ObjectName("default", "new")
    update = store.follow([Unreadable(key, "No.", "uid-new", "9")], after(5))
    assert changes(update) == []
    assert [known.key for known in store.not_understood()] == [key]
    shown = store.get(key)
    assert shown is not None
    assert (shown.phase, shown.holder, shown.lasting.lease.uid) == (Phase.UNTIMED, None, "uid-new")
    assert store.understood(key) is None
    update = store.follow([Applied(one("new", version=10))], after(9))
    assert changes(update) == [("new", "created", "x", True)]
    assert store.not_understood() == []


@pytest.mark.parametrize("uid", ["uid-odd", "another"])
def test_one_not_understood_that_is_deleted_is_gone(store: Store, uid: str) -> None:
    store.follow([GARBAGE], after(5))
    last = lease(None, name="odd", uid=uid, version=10)
    update = store.follow([Deleted(last)], after(60))
    assert changes(update)[-1] == ("odd", "deleted", None, True)
    assert "expired" not in [change for _, change, _, _ in changes(update)]
    assert store.get(ODD) is None
    assert store.not_understood() == []


def test_changes_before_a_failed_write_of_another_uid_come_after_it(
    store: Store, fault: FaultAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault("first_sight")
    again = lease("y", name="odd", uid="another", version=5)
    assert changes(store.follow([Applied(again)], after(5))) == []
    assert len(store.snapshot()) == 3
    monkeypatch.undo()
    again = lease("y", name="odd", uid="another", version=6)
    reported = changes(store.follow([Applied(again)], after(6)))
    assert [change for _, change, _, _ in reported] == ["deleted", "created"]


def test_a_deadline_that_fails_is_skipped_and_the_others_turn(store: Store, fault: FaultAt) -> None:
    fault("turned")
    update = store.turn(after(60))
    assert sorted(change[:2] for change in changes(update)) == [("a", "expired"), ("z", "expired")]
    assert [known.key for known in store.not_understood()] == [ODD]
    assert store.turn(after(120)) is None


@pytest.mark.parametrize("place", ["next_sight", "listed_renewed", "_arm"])
def test_a_list_is_read_but_for_what_fails(
    fault: FaultAt, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store("c")
    store.replace(Listed(tuple(one(name, version=1) for name in NAMES), "1"), NOON)
    fault(place)
    moved = [one(name, "y", version=5) for name in NAMES]
    store.lost(NOON)
    store.enter(ListPage(tuple(moved[:2]), "9"), after(5))
    store.replace(Listed(tuple(moved[2:]), "9"), after(5))
    assert [known.key for known in store.snapshot()] == [ObjectName("default", n) for n in NAMES]
    assert [known.holder for known in store.snapshot()][::2] == ["y", "y"]
    if place == "listed_renewed":
        return  # another holder is no renewal
    assert [known.key for known in store.not_understood()] == [ODD]
    monkeypatch.undo()
    update = store.replace(Listed(tuple(moved), "10"), after(6))
    assert changes(update) == [("odd", "replaced", "y", True)]


def test_a_lease_with_an_unreadable_name_keeps_a_list_from_inferring_deletions(
    store: Store,
) -> None:
    nameless = Unreadable(None, "No.")
    left = tuple(one(name, version=1) for name in ("a", "z"))
    update = store.replace(Listed(left, "9", unreadable=(nameless,)), after(5))
    assert changes(update) == []
    assert store.nameless_at == after(5)
    assert changes(store.replace(Listed(left, "10"), after(6))) == [("odd", "deleted", None, True)]


def test_an_unreadable_item_of_a_list_is_there(store: Store) -> None:
    left = tuple(one(name, version=1) for name in ("a", "z"))
    update = store.replace(Listed(left, "9", unreadable=(GARBAGE,)), after(5))
    assert changes(update) == []
    assert [known.key for known in store.not_understood()] == [ODD]
    assert store.understood(ODD).resource_version == "1"  # type: ignore[union-attr]


def test_an_old_unreadable_event_is_no_news(store: Store) -> None:
    store.follow([Applied(one("odd", version=20, renewed=2))], after(2))
    assert store.follow([GARBAGE], after(5)) is None
    assert store.not_understood() == []


def test_a_renewal_known_by_its_bytes_is_read_whole_once_its_lease_is_not_understood() -> None:
    line = (
        b'{"type":"MODIFIED","object":{"metadata":{"name":"odd","namespace":"default",'
        b'"uid":"uid-odd","resourceVersion":"%d","managedFields":[{"time":"2026-11-20T12:00:00Z"}]},'
        b'"spec":{"holderIdentity":"x","leaseDurationSeconds":15,'
        b'"acquireTime":"2026-11-20T12:00:00.000000Z","renewTime":"2026-11-20T12:00:%02d.000000Z",'
        b'"leaseTransitions":0}}}'
    )
    store = Store("c")
    read = Reader(store.fingerprints).read
    for second in range(1, 8):
        store.follow([read(line % (second, second))], after(second))
    assert store.fingerprints
    store.follow([Unreadable(ODD, "No.", "uid-odd", "20")], after(8))
    assert not store.fingerprints
    store.follow([read(line % (30, 9))], after(9))
    known = store.get(ODD)
    assert known is not None
    assert (known.phase, known.lasting.not_understood) == (Phase.HELD, None)


def test_an_override_set_meanwhile_stays(store: Store) -> None:
    store.follow([GARBAGE], after(5))
    store.set_overrides({ODD: ("lock", "set by ada")}, after(6))  # type: ignore[dict-item]
    store.follow([Applied(one("odd", version=10, renewed=7))], after(7))
    known = store.get(ODD)
    assert known is not None
    assert (known.kind, known.kind_reason) == ("lock", "set by ada")


async def test_the_tracker_names_counts_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    reported: list[Update] = []
    tracker = Tracker(Store("c"), [reported.append], lambda: after(5))
    tracker.handle(Listed((one("odd", version=1),), "1"))
    tracker.handle(Connected())
    tracker.handle(Arrived((GARBAGE, Applied(one("z", version=12)))))
    tracker.handle(Arrived((Unreadable(ODD, GARBAGE.reason, "uid-odd", "13"),)))
    tracker.handle(Replayed((Unreadable(None, "Nothing."),)))
    tracker.stop()
    assert [change[:2] for change in changes(*reported)] == [("odd", "created"), ("z", "created")]
    assert tracker.counters.not_understood == 3
    assert caplog.text.count("default/odd is not understood") == 1
    assert "It cannot be read: no text." in caplog.text
    assert "without a readable name" in caplog.text


async def test_the_log_names_a_few_of_very_many(caplog: pytest.LogCaptureFixture) -> None:
    tracker = Tracker(Store("c"), [], lambda: after(5))
    many = [Unreadable(ObjectName("n", f"odd-{n}"), "No.", "", str(n + 1)) for n in range(300)]
    tracker.handle(Arrived(many))
    tracker.stop()
    assert len(caplog.records) == 20
    assert tracker.counters.not_understood == 300
