"""An edit of leaseDurationSeconds makes contenders count anew; it renews nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from leases.domain.cause.clue import Clue
from leases.domain.change import FieldManager, writer_of
from leases.domain.phase import explain
from leases.domain.steady_clock import Jump
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked, Update
from leases.wire.watch_decoding import Applied, Listed
from tests.support.values.leases import NOON, after, lease

KEY = lease().key
DURATION = "leaseDurationSeconds"


@pytest.fixture
def store() -> Store:
    """Renewed every 2 s, last at 20 s after noon."""
    store = Store("c")
    store.replace(Listed((lease(),), "1"), NOON)
    for second in range(2, 22, 2):
        write(store, second, renewed=second)
    return store


def write(store: Store, at: float, **fields: float) -> Update:
    store.turn(after(at))
    written = lease(**fields, version=int(at) + 2)  # type: ignore[arg-type]
    update = store.follow((Applied(written),), after(at))
    assert update is not None
    return update


def known(store: Store) -> Tracked:
    tracked = store.get(KEY)
    assert tracked is not None
    return tracked


def test_it_lasts_from_the_edit_and_its_last_renewal_stays(store: Store) -> None:
    update = write(store, 32, renewed=20, duration=60)
    assert [change.change.value for change in update.changes] == ["reconfigured"]
    found = known(store)
    assert (found.observed_at, found.renewed_at) == (after(32), after(20))
    assert found.runs_out_at == after(92)
    assert explain(found, after(33)).text == (
        "renewed 13.0 s ago; leaseDurationSeconds edited 1.0 s ago; lasts from then on 60 s; "
        "others may take it in 59.0 s"
    )
    assert update.late == ()
    assert store.near_misses(NOON) == []


def test_the_next_renewal_is_one_and_is_drawn_anew(store: Store) -> None:
    write(store, 22, renewed=20, duration=60)
    write(store, 24, renewed=20, duration=30)
    assert known(store).renewed_at == after(20)
    update = write(store, 26, renewed=26, duration=30)
    assert (update.redraw, update.renewed) == ((KEY,), ())
    assert known(store).renewed_at == known(store).observed_at == after(26)
    update = write(store, 28, renewed=28, duration=30)
    assert (update.redraw, update.renewed) == ((), (KEY,))


def test_what_expires_after_an_edit_was_last_renewed_before_it(store: Store) -> None:
    write(store, 30, renewed=20, duration=60)
    update = store.turn(after(91))
    assert update is not None
    (expired,) = update.changes
    assert (expired.at, expired.renewed_at) == (after(90), after(20))


def test_one_that_expired_recovers_by_the_edit_that_its_writer_made(store: Store) -> None:
    update = write(store, 50, renewed=20, duration=60)
    recovered, edited = update.changes
    assert (recovered.change, recovered.fields) == ("recovered", (DURATION,))
    assert (edited.change, edited.fields) == ("reconfigured", (DURATION,))
    clue: Clue = update.clues[0]
    holder = FieldManager("operator", "Update", NOON, frozenset({"spec.renewTime"}))
    person = FieldManager("kubectl-edit", "Update", NOON, frozenset({f"spec.{DURATION}"}))
    assert writer_of(recovered, (holder, person), clue.before, clue.after) == "kubectl-edit"
    again = write(store, 120, renewed=120, duration=60).changes
    assert [change.fields for change in again if change.change == "recovered"] == [()]


def test_what_a_term_was_expired_is_known_until_the_next_one(store: Store) -> None:
    """Every live row measures the term by it."""
    write(store, 50, renewed=20, duration=60)
    assert known(store).lapses == ((after(35), after(50)),)
    write(store, 120, renewed=120, duration=60)
    assert known(store).lapses == ((after(35), after(50)), (after(110), after(120)))
    store.clock_jumped(Jump(after(122), after(3722)))
    hour = timedelta(hours=1)
    assert known(store).lapses[0] == (after(35) + hour, after(50) + hour)
    write(store, 3800, holder="b", acquired=3800, renewed=3800)
    assert known(store).lapses == ()


def test_a_jump_of_the_clock_moves_the_last_renewal_too(store: Store) -> None:
    write(store, 22, renewed=20, duration=60)
    store.clock_jumped(Jump(after(22), after(3622)))
    assert known(store).renewed_at == after(20) + timedelta(hours=1)


def test_an_edit_that_nobody_saw_lasts_from_when_it_was_seen_and_not_from_before(
    store: Store,
) -> None:
    """renewTime does not tell when it was: nothing may run out before it was written."""
    store.turn(after(36))
    store.lost(after(40))
    listed = Listed((lease(renewed=20, duration=16, version=99),), "99")
    update = store.replace(listed, after(90))
    assert [(one.change.value, one.at) for one in update.changes] == [
        ("recovered", after(90)), ("reconfigured", after(90)),
    ]  # fmt: skip
    assert known(store).runs_out_at == after(106)
    expired = store.turn(after(107))
    assert expired is not None
    assert [(one.change.value, one.at) for one in expired.changes] == [("expired", after(106))]
