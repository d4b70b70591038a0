"""What an admin says of a Lease stands above the rules, at once and for good."""

from __future__ import annotations

import msgspec

from leases.domain.kind import Kind, Verdict
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked
from leases.wire.watch_decoding import Applied, Deleted, Listed
from tests.support.values.leases import after, lease

KEY = ObjectName("default", "controller")
LOCK: Verdict = (Kind.LOCK, "set by ada")


def known(store: Store) -> Tracked:
    tracked = store.get(KEY)
    assert tracked is not None
    return tracked


def verdict(store: Store) -> Verdict:
    return known(store).kind, known(store).kind_reason


def watched() -> Store:
    store = Store("c")
    store.replace(Listed((lease(version=1),), "1"), after(0))
    return store


def test_a_verdict_is_seen_at_once_and_counted() -> None:
    store = watched()
    update = store.set_overrides({KEY: LOCK}, after(1))
    assert update is not None
    assert (update.redraw, update.changes) == ((KEY,), ())
    assert verdict(store) == LOCK
    assert store.counts()[Kind.LOCK][Phase.HELD] == 1
    assert sum(store.counts()[Kind.ELECTION].values()) == 0
    assert [row.key for row in store.select((Kind.LOCK,), tuple(Phase))] == [KEY]


def test_an_override_set_twice_changes_nothing() -> None:
    store = watched()
    store.set_overrides({KEY: LOCK}, after(1))
    assert store.set_overrides({KEY: LOCK}, after(2)) is None


def test_a_verdict_outlasts_renewals_new_holders_and_relists() -> None:
    store = watched()
    store.set_overrides({KEY: LOCK}, after(1))
    for number in range(2, 6):
        store.follow((Applied(lease(renewed=number, version=number)),), after(number))
    update = store.follow((Applied(lease("b", renewed=6, acquired=6, version=6)),), after(6))
    assert update is not None
    assert [(c.change.value, c.kind) for c in update.changes] == [("replaced", Kind.LOCK)]
    store.replace(Listed((lease("c", renewed=9, acquired=9, version=9),), "9"), after(9))
    assert verdict(store) == LOCK


def test_a_verdict_awaits_a_lease_that_is_not_there_or_comes_again() -> None:
    store = Store("c")
    assert store.set_overrides({KEY: LOCK}, after(0)) is None
    store.replace(Listed((), "1"), after(0))
    for number in (2, 4):
        store.follow((Applied(lease(uid=f"u-{number}", version=number)),), after(number))
        assert verdict(store) == LOCK
        store.follow((Deleted(lease(uid=f"u-{number}", version=number + 1)),), after(number + 1))


def test_without_a_verdict_the_rules_judge_again() -> None:
    store = watched()
    before = verdict(store)
    store.set_overrides({KEY: LOCK}, after(1))
    store.set_overrides({}, after(2))
    assert verdict(store) == before


def test_a_restart_remembers_and_a_verdict_taken_back_meanwhile_is_gone() -> None:
    first = watched()
    first.set_overrides({KEY: LOCK}, after(1))
    kept = msgspec.json.decode(msgspec.json.encode(first.snapshot()), type=tuple[Tracked, ...])
    for wanted, expected in (({KEY: LOCK}, Kind.LOCK), ({}, Kind.ELECTION)):
        store = Store("c")
        store.restore(kept, after(2))
        assert known(store).kind is Kind.LOCK
        store.set_overrides(wanted, after(3))
        assert known(store).kind is expected


def test_a_lease_that_names_nobody_is_held_only_while_it_counts_as_a_heartbeat() -> None:
    store = Store("c")
    nameless = lease(None, acquired=None, transitions=None, renewed=None, duration=15, version=1)
    store.replace(Listed((nameless,), "1"), after(0))
    assert known(store).phase is Phase.VACANT
    update = store.set_overrides({KEY: (Kind.HEARTBEAT, "set by ada")}, after(1))
    assert update is not None
    assert (known(store).holder, known(store).phase) == (KEY.name, Phase.UNTIMED)
    store.set_overrides({}, after(2))
    assert (known(store).holder, known(store).phase) == (None, Phase.VACANT)


def test_a_checkpoint_of_an_earlier_version_keeps_its_override() -> None:
    store = watched()
    store.set_overrides({KEY: LOCK}, after(1))
    stored = msgspec.json.encode(known(store))
    assert b'"overruled":true' in stored, "the name that earlier versions wrote"
    assert msgspec.json.decode(stored, type=Tracked).lasting.overridden
