"""History says of an instant what the store said at it: which Leases were abandoned or excused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from leases.actions.overrides import mark_may_be_vacant
from leases.domain.lease import Lease
from leases.history.overrides import load_marks
from leases.history.states_as_of import State, states_at
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.wire.watch_decoding import Applied, Listed
from tests.support.values.change_rows import to_row
from tests.support.values.leases import after, lease

pytestmark = pytest.mark.django_db

KEY = lease().key
AN_HOUR = timedelta(hours=1)
HOUR = 3600
NEVER = {"renewed": None, "acquired": None, "transitions": None, "duration": None}


def released(seconds: float, version: int) -> Lease:
    return lease(None, renewed=seconds, acquired=seconds, duration=1, version=version)


def state(seconds: float) -> State:
    (found,) = states_at("c", [KEY], after(seconds), abandoned_after=AN_HOUR)
    return found


def save(update: Update | None) -> None:
    for change in update.changes if update else ():
        to_row(change).save()


LIVES = {
    "never held": ([lease(None, **NEVER, version=1)], {}),
    "never held, made while we watch": ([], {5: lease(None, **NEVER, version=2)}),
    "released before the first list": ([released(-700, 1)], {}),
    "released long before the first list": ([released(-70_000, 1)], {}),
    "released and acquired": (
        [lease(version=1)],
        {
            5: released(5, 2),
            2 * HOUR: lease("b", renewed=2 * HOUR, acquired=2 * HOUR, version=3),
            2 * HOUR + 5: released(2 * HOUR + 5, 4),
        },
    ),
    "never renewed": ([], {5: lease(renewed=5, acquired=5, version=2)}),
    "renewed once": (
        [],
        {5: lease(renewed=5, acquired=5, version=2), 10: lease(renewed=10, acquired=5, version=3)},
    ),
    "expired before the first list, and never renewed": (
        [lease(renewed=-9000, acquired=-9000, created=-9000, version=1)],
        {},
    ),
    "expired before the first list, and renewed": (
        [lease(renewed=-9000, acquired=-9900, created=-9900, version=1)],
        {},
    ),
    "expired, then emptied": ([], {5: lease(version=2), 100: released(100, 3)}),
}


@pytest.mark.parametrize("life", LIVES)
def test_every_instant_is_as_it_was_live(life):
    first, writes = LIVES[life]
    store = Store("c", abandoned_after=AN_HOUR)
    save(store.replace(Listed(tuple(first), "1"), after(0)))
    seen = []
    for seconds in range(0, 4 * HOUR, 5):
        save(store.turn(after(seconds)))
        if seconds in writes:
            save(store.follow((Applied(writes[seconds]),), after(seconds)))
            save(store.turn(after(seconds)))
        known = store.get(KEY)
        if known is not None and (seconds < 60 or seconds % 300 == 0):
            seen.append((seconds, known.abandoned, known.phase))
    then = [(at, state(at).abandoned, state(at).standing.phase) for at, _, _ in seen]
    assert then == [(at, abandoned, phase) for at, abandoned, phase in seen]
    assert {abandoned for _, abandoned, _ in seen} == EXPECTED.get(life, {False, True})


EXPECTED = {
    "renewed once": {False},
    "expired before the first list, and renewed": {False},
    "released long before the first list": {True},
    "expired before the first list, and never renewed": {True},
}


def test_the_threshold_is_the_callers():
    save(Store("c").replace(Listed((released(-50, 1),), "1"), after(0)))
    for seconds, expected in ((5, False), (60, True)):
        (found,) = states_at("c", [KEY], after(5), abandoned_after=timedelta(seconds=2 * seconds))
        assert found.abandoned is not expected


def test_a_mark_counts_in_the_time_in_which_it_stood():
    ada = User.objects.create(username="ada")
    store = Store("c", abandoned_after=AN_HOUR)
    save(store.replace(Listed((released(-50, 1),), "1"), after(0)))
    for seconds, may in ((100, True), (2 * HOUR, False)):
        mark_may_be_vacant(user=ada, cluster="c", key=KEY, may_be_vacant=may, at=after(seconds))
        assert load_marks().get("c", {}) == ({KEY: "ada"} if may else {})
    assert "d" not in load_marks()
    told = [(state(at).may_be_vacant, state(at).excused) for at in (50, 100, 2 * HOUR - 1)]
    assert told == [(False, False), (True, True), (True, True)]
    now = state(2 * HOUR)
    assert (now.may_be_vacant, now.abandoned, now.excused) == (False, True, True)
