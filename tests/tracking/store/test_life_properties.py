"""What the changes of any sequence of Leases add up to, beside a naive replay of the Leases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise

from hypothesis import given

from leases.domain.change import Change, ChangeType, renewal_moved
from leases.domain.figures import totals_in
from leases.domain.kind import Kind
from leases.domain.lease import Lease, ObjectName
from leases.domain.terms import Generation, Life, PastPhase, as_of, fold
from leases.tracking.store import Store
from leases.wire.watch_decoding import Applied, Deleted
from tests.support.values.lease_histories import Event, apply_all, histories
from tests.support.values.leases import after, lease

FOR_EVER = datetime.max.replace(tzinfo=UTC)
MOMENT = timedelta(microseconds=1)
# From then on: who is named, and when it runs out; None: there is no Lease.
Known = tuple[str | None, datetime | None] | None


def replay(events: list[Event]) -> tuple[dict[str, list[Change]], dict[str, dict[datetime, Known]]]:
    """Per name all changes, and what was there from each instant on, by the events alone."""
    store = Store("c")
    reported: dict[str, list[Change]] = {}
    there: dict[str, dict[datetime, Known]] = {}
    written: dict[str, tuple[Lease, datetime]] = {}
    for event, seconds in events:
        lease, now = event.lease, after(seconds)
        name = lease.metadata.name
        for change in apply_all(store, [(event, seconds)]):
            reported.setdefault(change.name, []).append(change)
        if isinstance(event, Deleted):
            written.pop(name, None)
            there.setdefault(name, {})[now] = None
            continue
        before = written.get(name)
        renewed = before is None or renewal_moved(before[0], lease)
        observed = now if before is None or renewed else before[1]
        written[name] = (lease, observed)
        row = store.get(ObjectName("default", name))
        assert row is not None
        duration = lease.spec.lease_duration_seconds
        timed = row.holder and duration is not None and lease.spec.renew_time is not None
        ends = observed + timedelta(seconds=duration or 0) if timed else None
        there.setdefault(name, {})[now] = (row.holder, ends)
    return reported, there


def naive(there: dict[datetime, Known], at: datetime) -> tuple[PastPhase, str | None]:
    known = [state for since, state in there.items() if since <= at]
    state = known[-1] if known else None
    if state is None:
        return PastPhase.DELETED, None
    holder, ends = state
    if holder is None:
        return PastPhase.VACANT, None
    return (PastPhase.EXPIRED if ends is not None and ends <= at else PastPhase.HELD), holder


def instants(there: dict[datetime, Known]) -> list[datetime]:
    ends = [state[1] for state in there.values() if state and state[1]]
    last = max(there)
    edges = {*there, *(end for end in ends if end < last)}
    return sorted({edge + shift for edge in edges for shift in (-MOMENT, timedelta(), MOMENT)})


def spans(life: Life, generation: Generation) -> list[tuple[datetime, datetime]]:
    """What lies in a generation, in order; those without length first."""
    since, until = generation.since, generation.until or FOR_EVER
    inside = [
        (span.since, span.until or FOR_EVER)
        for span in (*life.terms, *life.gaps)
        if since <= span.since and (span.until or FOR_EVER) <= until
    ]
    return sorted(inside)


@given(histories())
def test_terms_and_gaps_tile_the_life(events: list[Event]) -> None:
    for changes in replay(events)[0].values():
        life = fold(changes)
        for earlier, later in pairwise(life.generations):
            assert earlier.until is not None
            assert earlier.until <= later.since
        for generation in life.generations:
            reached = generation.since
            for since, until in spans(life, generation):
                assert since == reached
                reached = until
            assert reached == (generation.until or FOR_EVER)
        count = sum(len(spans(life, generation)) for generation in life.generations)
        inside = [gap for gap in life.gaps if gap.after is not ChangeType.DELETED]
        assert count >= len(life.terms) + len(inside)
        for term in life.terms:
            edges = [edge for gap in term.gaps for edge in (gap.since, gap.until)]
            assert edges == sorted(edges)
            assert all(term.since <= edge for edge in edges)
            assert term.until is None or all(edge <= term.until for edge in edges)


def test_a_change_of_kind_loses_no_expiry() -> None:
    """Without its counter it is a heartbeat, which its own name holds; its time has run out."""
    nameless = partial(lease, None, acquired=None, renewed=0.0, duration=15, name="a")
    events: list[Event] = [
        (Applied(nameless(transitions=0, version=1)), 0.0),
        (Applied(nameless(transitions=None, version=2)), 30.0),
        (Applied(nameless(transitions=0, version=3)), 40.0),
        (Applied(nameless(transitions=None, version=4)), 50.0),
        (Applied(nameless(transitions=None, version=5, preferred="y")), 60.0),
    ]
    reported = [(change.change.value, change.at) for change in replay(events)[0]["a"]]
    assert reported == [
        ("created", after(0)),
        ("acquired", after(30)),
        ("expired", after(30)),
        ("released", after(40)),
        ("acquired", after(50)),
        ("expired", after(50)),
        ("reconfigured", after(60)),
    ]
    agrees_with_a_naive_replay(events)


@given(histories())
def test_as_of_agrees_with_a_naive_replay(events: list[Event]) -> None:
    agrees_with_a_naive_replay(events)


def agrees_with_a_naive_replay(events: list[Event]) -> None:
    reported, there = replay(events)
    for name, states in there.items():
        life = fold(reported.get(name, ()))
        for at in instants(states):
            stood = as_of(life, at)
            expected = naive(states, at)
            assert (stood.phase, stood.holder) == expected, (name, at)
            assert stood.exists == (expected[0] is not PastPhase.DELETED)


@given(histories())
def test_time_without_a_holder_is_the_time_in_which_nobody_stood(events: list[Event]) -> None:
    reported, there = replay(events)
    for name, states in there.items():
        life = fold(reported.get(name, ()))
        edges = [at for at in instants(states) if min(states) <= at <= max(states)]
        alone = sum(
            (end - start).total_seconds()
            for start, end in pairwise(edges)
            if naive(states, start)[0] in (PastPhase.EXPIRED, PastPhase.VACANT)
        )
        span = {"since": min(states), "until": max(states)}
        made_anew = sum(
            (min(gap.until, span["until"]) - gap.since).total_seconds()
            for gap in life.gaps
            if gap.after is ChangeType.DELETED and gap.until is not None
        )
        counted = totals_in(life, Kind.ELECTION, **span).gap_seconds
        assert abs(counted - made_anew - alone) < 1e-6


@given(histories())
def test_later_changes_leave_the_state_as_of_an_instant(events: list[Event]) -> None:
    for changes in replay(events)[0].values():
        whole = fold(changes)
        for cut, (last, following) in enumerate(pairwise(changes), start=1):
            if last.at < following.at:
                then, now = as_of(fold(changes[:cut]), last.at), as_of(whole, last.at)
                assert (then.phase, then.holder, then.since) == (now.phase, now.holder, now.since)
