"""Any time that MicroTime allows, any int32, a clock of our own that is centuries off: nothing
raises, and the other Leases are shown as if the odd one were not there.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from dashboard.parts.lease_head import lease_view
from dashboard.parts.lease_row import row_view
from leases.domain.change import identity
from leases.domain.terms import fold
from leases.tracking.renewals import RenewalLog
from leases.tracking.tracked_lease import Tracked, read_remembered
from tests.tracking.odd_histories import Follower, Step, odd_histories


@settings(max_examples=3 * settings.default.max_examples)
@given(odd_histories())
def test_an_odd_lease_raises_nothing_and_changes_nothing_of_others(history: list[Step]) -> None:
    both, alone = Follower(), Follower()
    both.follow(history)
    alone.follow([(what, event if what == "plain" else None, now) for what, event, now in history])
    assert [change for change in both.changes if change.name == "plain"] == alone.changes
    states = [state for state in both.store.snapshot() if state.key.name == "plain"]
    assert tuple(states) == alone.store.snapshot()


@pytest.mark.usefixtures("board")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(odd_histories())
def test_an_odd_lease_can_be_stored_sent_and_drawn(history: list[Step]) -> None:
    follower = Follower()
    follower.follow(history)
    now = history[-1][2]
    assert all(identity(change) for change in follower.changes)
    assert fold(follower.changes) is not None
    for state in follower.store.snapshot():
        assert read_remembered([msgspec.json.encode(state)]) == [state]
        _draw(state, now)


def _draw(state: Tracked, now: datetime) -> None:
    log = RenewalLog()
    log.look([state])
    assert all(interval.seconds >= 0 for interval in log.of(state))
    assert row_view("a", state, now).name == state.key.name
    assert lease_view("a", state, now).row.name == state.key.name
