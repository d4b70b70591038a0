"""Which renewed Leases are remembered next: each in its turn, and none that stays as it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from leases.domain.lease import Lease, LeaseSpec, ObjectMeta
from leases.tracking.store import Store
from leases.wire.watch_decoding import Applied, Listed

T0 = datetime(2026, 11, 1, 12, tzinfo=UTC)


def lease(name: str, seconds: int, version: int) -> Lease:
    spec = LeaseSpec(name, 40, None, T0 + timedelta(seconds=seconds))
    return Lease(ObjectMeta(name, "default", f"uid-{name}", str(version)), spec)


def a_store(names: str) -> Store:
    store = Store("a")
    store.replace(Listed(tuple(lease(name, 0, 1) for name in names), "1"), T0)
    return store


def turns(store: Store, most: int, seconds: int) -> str:
    return "".join(
        key.name for key in store.checkpoint_rotation.next(most, T0 + timedelta(seconds=seconds))
    )


def test_each_has_its_turn_in_name_order():
    store = a_store("cabed")
    assert [turns(store, 2, second) for second in range(4)] == ["ab", "cd", "e", "ab"]


def test_one_that_goes_or_comes_between_turns_takes_none_from_others():
    store = a_store("abcd")
    assert turns(store, 2, 1) == "ab"
    store.follow((Applied(lease("aa", 2, 2)),), T0 + timedelta(seconds=2))
    assert [turns(store, 2, second) for second in (3, 4)] == ["cd", ""]
    assert turns(store, 5, 5) == "aaabcd"


def test_a_lease_without_a_new_renewal_is_not_stored_again():
    store = a_store("abc")
    for second in (1, 2, 3):
        turns(store, 9, second)
    assert turns(store, 9, 4) == ""
    store.follow((Applied(lease("b", 5, 2)),), T0 + timedelta(seconds=5))
    assert turns(store, 9, 6) == "b"
