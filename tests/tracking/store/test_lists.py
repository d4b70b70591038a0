"""The state of a cluster after lists: the first one, and those after a break."""

from __future__ import annotations

import msgspec

from leases.domain.lease import Lease
from leases.domain.phase import Phase
from leases.domain.steady_clock import EARLIEST
from leases.tracking.store import Store
from leases.wire.watch_decoding import Applied, Listed, ListPage
from tests.support.values.leases import after, lease
from tests.tracking.store.one_store import known, put, relisted, renewing, words


def test_the_first_list_estimates_from_renew_time() -> None:
    store = Store("c")
    seen = lease(acquired=-50, renewed=-3, created=-100)
    update = store.replace(Listed((seen,), "7"), after(0))
    (created,) = update.changes
    assert (created.change, created.inferred, created.at) == ("created", True, after(-50))
    assert (created.inferred_since, update.listed) == (after(-100), True)
    assert (known(store).observed_at, known(store).estimated) == (after(-3), True)
    assert words(store.turn(after(12))) == ["expired"]


def test_a_renew_time_from_the_future_is_observed_now() -> None:
    store = Store("c")
    store.replace(Listed((lease(renewed=420),), "7"), after(0))
    assert known(store).observed_at == after(0)


def test_a_lease_that_expired_before_the_first_list_is_expired_at_once() -> None:
    store = Store("c")
    dead = lease(acquired=None, renewed=-1000, created=-5000)
    update = store.replace(Listed((dead,), "7"), after(0))
    created, expired = update.changes
    assert (expired.change, expired.at, expired.inferred) == ("expired", after(-985), True)
    assert created.at == after(-1000)
    assert known(store).phase is Phase.EXPIRED


def test_nothing_is_dated_before_the_lease_was_created() -> None:
    """A renewTime in year 1 is no moment at which anything happened."""
    store = Store("c")
    dead = lease(renewed=None, created=-3600)
    spec = msgspec.structs.replace(dead.spec, acquire_time=EARLIEST, renew_time=EARLIEST)
    update = store.replace(Listed((Lease(dead.metadata, spec),), "7"), after(0))
    assert words(update) == ["created", "expired"]
    assert {change.at for change in update.changes} == {after(-3600)}
    (state,) = store.snapshot()
    assert (state.phase, state.phase_since) == (Phase.EXPIRED, after(-3600))


def test_a_lease_that_expires_during_the_list_waits_for_the_watch() -> None:
    store = Store("c")
    update = store.replace(Listed((lease(renewed=-16),), "7"), after(0))
    assert words(update) == ["created"]
    assert words(put(store, 0.5, renewed=0.4, version=8)) == ["expired", "recovered"]


def test_a_renewal_while_the_list_was_read_is_as_old_as_it_says() -> None:
    store = Store("c")
    store.enter(ListPage((), "9"), after(0))
    store.replace(Listed((lease(renewed=-3, version=8),), "9"), after(5))
    store.follow((Applied(lease(renewed=2, version=10)),), after(5.5))
    assert known(store).observed_at == after(2)


def test_only_the_pages_of_the_first_list_tell_of_what_nobody_watched_before() -> None:
    store = Store("c")
    assert store.enter(ListPage((lease(),), "10"), after(1)).first
    assert store.replace(Listed((), "10"), after(1)).first
    assert not store.enter(ListPage((lease(),), "11"), after(2)).first
    assert not store.replace(Listed((), "11"), after(2)).first
    again = Store("c")
    again.restore((), after(-60))
    assert not again.replace(Listed((lease(),), "10"), after(0)).first


def test_a_list_without_news_changes_nothing() -> None:
    store = Store("c")
    last = renewing(store, 6)
    update = relisted(store, 7, lease(renewed=6, version=last))
    assert (update.changes, update.listed) == ((), True)
    assert known(store).estimated is False


def test_a_list_begun_twice_still_finds_deletions() -> None:
    store = Store("c")
    stays, goes = lease(), lease(name="b", uid="b")
    store.replace(Listed((stays, goes), "9"), after(0))
    store.enter(ListPage((stays,), "10"), after(1))
    store.enter(ListPage((stays,), "10"), after(2))
    assert words(store.replace(Listed((), "10"), after(3))) == ["deleted"]


def test_a_list_shows_only_the_last_of_many_renewals() -> None:
    store = Store("c")
    version = renewing(store, 12)
    before = known(store)
    store.lost(after(12))
    update = store.replace(Listed((lease(renewed=26, version=90),), "91"), after(28))
    now = known(store)
    assert (version, words(update), update.redraw) == (7, [], ())
    assert (now.observed_at, now.estimated) == (after(26), True)
    assert (now.lease.resource_version, now.lease.spec.renew_time) == ("90", after(26))
    assert (now.renewals_seen, now.cadence_seconds) == (before.renewals_seen, 2.0)
    assert words(store.turn(after(29))) == []
    assert words(store.turn(after(41))) == ["expired"]


def test_events_after_a_late_list_happened_at_the_times_they_claim() -> None:
    """Earlier events are handled first, which takes a while; the list keeps its arrival time."""
    store = Store("c")
    store.restore((), after(-60))
    store.replace(Listed((lease(renewed=-1, version=1),), "1", age=4.0), after(4))
    store.follow((Applied(lease(renewed=1, version=2)),), after(4.1))
    assert [row.observed_at for row in store.snapshot()] == [after(1)]


def test_what_ran_out_before_an_earlier_list_is_inferred_however_late_it_is_told() -> None:
    """It was taken over and ran out unwatched; its next renewal comes while events are late."""
    store = Store("c")
    renewing(store, 6)
    store.lost(after(6))
    taken = lease(holder="other", renewed=10, version=90)
    listed = store.replace(Listed((taken,), "91", age=4.0), after(40))
    update = put(store, 55, holder="other", renewed=45, version=92)
    assert update is not None
    changes = [*listed.changes, *update.changes]
    assert [one.change.value for one in changes] == ["taken_over", "expired", "recovered"]
    assert [one.inferred for one in changes] == [True, True, False]
    assert (changes[1].inferred_since, changes[1].at) == (after(6), after(36))


def test_what_ran_out_before_the_last_of_two_lists_is_inferred() -> None:
    store = Store("c")
    last = renewing(store, 6)
    store.lost(after(6))
    assert words(relisted(store, 21.5, lease(renewed=6, version=last), version="90")) == []
    store.lost(after(21.6))
    assert words(relisted(store, 21.8, lease(renewed=6, version=last), version="91")) == []
    update = store.turn(after(23))
    assert update is not None
    assert [(one.change.value, one.inferred) for one in update.changes] == [("expired", True)]
