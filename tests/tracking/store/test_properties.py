"""What holds of a store whatever happens to it."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from leases.domain.change import ChangeType, identity
from leases.domain.kind import Kind
from leases.domain.phase import Phase, phase_of
from leases.tracking.store import Store
from leases.wire.watch_decoding import Listed
from tests.support.values.lease_histories import Event, apply_all, histories
from tests.support.values.leases import after


@given(histories())
def test_counts_and_phases_always_equal_a_recount(events: list[Event]) -> None:
    store = Store("c")
    for event in events:
        apply_all(store, [event])
        store.turn(after(event[1]))
        rows = store.snapshot()
        counted = Counter((row.kind, row.phase) for row in rows)
        counts = store.counts()
        assert {(k, p): counts[k][p] for k in Kind for p in Phase if counts[k][p]} == counted
        for row in rows:
            assert row.phase is phase_of(row, after(event[1]))


@given(histories())
def test_repeated_events_add_nothing(events: list[Event]) -> None:
    store = Store("c")
    apply_all(store, events)
    state = store.snapshot()
    assert [store.follow((event,), after(events[-1][1])) for event, _ in events] == [
        None for _ in events
    ]
    assert store.snapshot() == state


@given(histories())
def test_no_two_changes_of_a_lease_share_an_identity(events: list[Event]) -> None:
    reported = [(change.name, identity(change)) for change in apply_all(Store("c"), events)]
    assert len(set(reported)) == len(reported)


@given(histories(), st.integers(0, 25))
def test_a_restart_and_a_list_at_any_point_lead_to_the_same_leases(
    events: list[Event], cut: int
) -> None:
    whole = Store("c")
    apply_all(whole, events)
    first = Store("c")
    apply_all(first, events[:cut])
    seconds = events[min(cut, len(events)) - 1][1] if cut else 0
    second = Store("c")
    second.restore(first.snapshot(), after(seconds))
    listed = Listed(tuple(row.lease for row in whole.snapshot()), str(len(events)))
    second.replace(listed, after(events[-1][1]))
    assert [row.lease for row in second.snapshot()] == [row.lease for row in whole.snapshot()]
    assert [row.holder is None for row in second.snapshot()] == [
        row.phase is Phase.VACANT for row in second.snapshot()
    ]


@given(histories())
def test_every_term_that_begins_is_ended_before_the_next(events: list[Event]) -> None:
    holding: dict[str, str | None] = {}
    for change in apply_all(Store("c"), events):
        if change.change != "created":
            assert change.previous_holder == holding[change.name]
        holding[change.name] = change.holder


@given(histories(), st.data())
def test_replicas_with_different_clocks_record_the_same_changes(
    events: list[Event], data: st.DataObject
) -> None:
    """What two saw live differs in verdicts at most, where a write came as the time ran out."""
    delays = st.floats(0, 0.009)
    reported = []
    for _ in range(2):
        late = [(event, seconds + data.draw(delays)) for event, seconds in events]
        reported.append(apply_all(Store("c"), late))
    kept = [{(c.name, identity(c)): c for c in changes} for changes in reported]
    for name, word in kept[0].keys() ^ kept[1].keys():
        assert word.split()[1] in {"expired", "term"}, (name, word)
    for key in kept[0].keys() & kept[1].keys():
        one, other = kept[0][key], kept[1][key]
        assert one.holder == other.holder
        assert one.change is other.change or {one.change, other.change} == {
            ChangeType.TAKEN_OVER,
            ChangeType.REPLACED,
        }
