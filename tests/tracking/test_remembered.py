"""What an earlier run wrote down is read again, as far as it can be."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from leases.tracking.store import Store
from leases.tracking.tracked_lease import read_remembered
from leases.wire.watch_decoding import Applied, Listed
from tests.support.values.leases import after, lease
from tests.tracking.store.one_store import relisted, renewing


def test_a_record_that_cannot_be_read_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    store = Store("c")
    store.replace(Listed((lease(version=1),), "1"), after(0))
    (known,) = store.snapshot()
    records = [b'{"lease": 1}', msgspec.json.encode(known), b"\xff"]
    assert read_remembered(records) == [known]
    assert "2 stored Leases cannot be read" in caplog.text


def test_a_lease_takes_no_more_memory_after_a_start_than_before() -> None:
    store = Store("c")
    born = lease(version=1)
    store.replace(Listed((born,), "1"), after(0))
    (known,) = read_remembered([msgspec.json.encode(one) for one in store.snapshot()])
    created = known.lasting.lease.metadata.creation_timestamp
    assert known.lasting.phase_since is created
    assert known.lasting.held_since is created


def test_a_remembered_lease_is_not_said_to_have_expired_before_the_stop() -> None:
    """An earlier run does not store every renewal: it may have been renewed until then."""
    store = Store("c")
    store.replace(Listed((lease(version=1),), "1"), after(0))
    remembered = Store("c")
    remembered.restore(store.snapshot(), after(600))
    update = remembered.replace(Listed((lease(version=9, renewed=899),), "9"), after(900))
    assert update.changes == ()
    unseen = Store("c")
    unseen.restore(store.snapshot(), after(600))
    (expired,) = unseen.replace(Listed((lease(version=1),), "9"), after(900)).changes
    assert expired.inferred


def renewed(store: Store) -> None:
    store.follow((Applied(lease(renewed=9, version=20), 7),), after(9))


def written(store: Store) -> None:
    store.follow((Applied(lease(renewed=9, labels={"a": "b"}, version=20)),), after(9))


def listed(store: Store) -> None:
    relisted(store, 9, lease(renewed=9, version=20), version="20")


@pytest.mark.parametrize("observed", [renewed, written, listed])
def test_what_was_observed_since_the_start_may_have_expired_before_the_next_list(
    observed: Callable[[Store], None],
) -> None:
    before = Store("c")
    last = renewing(before, 6)
    store = Store("c")
    store.restore(before.snapshot(), after(7))
    relisted(store, 8, lease(renewed=6, version=last), version="10")
    store.caught_up()
    observed(store)
    store.lost(after(30))
    update = relisted(store, 60, lease(renewed=59, labels={"a": "b"}, version=50))
    expired = update.changes[0]
    assert (expired.change, expired.at, expired.inferred) == ("expired", after(24), False)
