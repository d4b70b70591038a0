"""Recorded watch streams become the terms and gaps that their writers logged."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

import pytest

from leases.domain.change import Change, ChangeType
from leases.domain.terms import Life, PastPhase, as_of, fold
from leases.wire.status import Gone
from tests.tracking.streams.replay import RECORDED, STREAMS, ended_at, lines, moment, replay, truth

SOON = timedelta(seconds=0.05)  # between a doer's log and our line


def lives(changes: list[Change]) -> dict[str, Life]:
    """What the changes add up to, by the Lease's name."""
    by_name: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        by_name[change.name].append(change)
    return {name: fold(mine) for name, mine in by_name.items()}


def held_spans(life: Life) -> list[tuple[str, str, datetime, datetime | None]]:
    """Holder, uid, begin and end of each span in which it was validly held."""
    spans = []
    for term in life.terms:
        since = term.since
        for gap in term.gaps:
            spans.append((term.holder, term.uid, since, gap.since))
            since = gap.until
        if since is not None:
            spans.append((term.holder, term.uid, since, term.until))
    return spans


NOT_COORDINATED = [name for name in RECORDED if name != "coordinated-election"]


def test_every_recorded_stream_of_leases_is_replayed() -> None:
    """Those without a truth of Leases are of candidates, or hold nothing but an error."""
    reported = {path.name.removesuffix(".truth.json") for path in STREAMS.glob("*.truth.json")}
    assert reported - set(RECORDED) == {"coordinated-election-candidates"}
    unprocessed_seconds = {path.stem for path in STREAMS.glob("*.ndjson")} - reported
    assert unprocessed_seconds == {"gone-410"}
    with pytest.raises(Gone):
        list(lines("gone-410"))


@pytest.mark.parametrize("stream", NOT_COORDINATED)
def test_every_term_and_gap_begins_and_ends_as_it_truly_did(stream: str) -> None:
    _, changes = replay(stream)
    listed = {change.name for change in changes if change.inferred}
    periods: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for period in truth(stream)["holders"]:
        periods[period["lease"]].append(period)
    folded = lives(changes)
    assert set(folded) == set(periods)
    for name, expected in periods.items():
        spans = held_spans(folded[name])
        assert [span[:2] for span in spans] == [(p["holder"], p["uid"]) for p in expected]
        for index, (span, period) in enumerate(zip(spans, expected, strict=True)):
            if index or name not in listed:
                assert span[2] == moment(period["first_seen"])
            valid_until = moment(period["lease_valid_until"])
            if valid_until is None or valid_until >= ended_at(stream):
                assert span[3] is None
            else:
                assert span[3] is not None
                assert abs(span[3] - valid_until) < SOON


@pytest.mark.parametrize("stream", NOT_COORDINATED)
def test_at_any_instant_it_stood_as_it_truly_did(stream: str) -> None:
    """Looked at in the middle of every true period, and of the time between two."""
    _, changes = replay(stream)
    folded = lives(changes)
    last: dict[str, dict[str, Any]] = {}
    for period in truth(stream)["holders"]:
        life, name = folded[period["lease"]], period["lease"]
        begin = moment(period["first_seen"])
        end = moment(period["lease_valid_until"]) or ended_at(stream)
        assert begin is not None
        stood = as_of(life, max(begin, begin + (end - begin) / 2))
        assert (stood.phase, stood.holder) == (PastPhase.HELD, period["holder"])
        if name in last and (before := moment(last[name]["lease_valid_until"])):
            between = as_of(life, before + (begin - before) / 2)
            ended_by = last[name]["ended_by"]
            if ended_by == "deleted":
                assert between.phase is PastPhase.DELETED
            elif ended_by == "released":
                assert between.phase is PastPhase.VACANT
            elif ended_by.startswith("crash"):
                assert (between.phase, between.holder) == (PastPhase.EXPIRED, last[name]["holder"])
        last[name] = period


def test_a_coordinated_elections_terms_are_those_of_its_truth() -> None:
    """Its `terms` count the controller's write of preferredHolder as a renewal; `changes`, as our
    rule, do not: where such a write came last, the term ends with the `expired` reported there.
    """
    life = lives(replay("coordinated-election")[1])["demo-scheduler"]
    reported = truth("coordinated-election")["leases"]["coordinated/demo-scheduler"]
    expected = reported["terms"]
    assert [(term.holder, term.uid, term.since) for term in life.terms] == [
        (term["holder"], term["uid"], moment(term["began_at"])) for term in expected
    ]
    prefers = {c["at"] for c in reported["changes"] if "preferredHolder" in c.get("fields", [])}
    expiries = [moment(c["at"]) for c in reported["changes"] if c["change"] == "expired"]
    for term, true in zip(life.terms, expected, strict=True):
        assert list(term.gaps) == true["gaps"]
        if true["ended_by"] is None:
            assert (term.until, term.ended) == (None, None)
        elif true["ended_by"] in {"released", "deleted"}:
            assert (term.until, term.ended) == (moment(true["ended_at"]), true["ended_by"])
        else:
            assert term.ended is ChangeType.EXPIRED
            assert term.until in expiries
            if true["last_write"] not in prefers:
                assert term.until == moment(true["valid_until"])
    ends = [moment(c["at"]) for c in reported["changes"] if c["gap_seconds"] is not None]
    assert [gap.until for gap in life.gaps if gap.until] == ends
    assert [mark.at for mark in life.reconfigurations] == [moment(at) for at in sorted(prefers)]


def test_the_gap_between_a_deletion_and_the_next_holder_is_measured() -> None:
    _, changes = replay("delete-recreate")
    gaps = [change.gap_seconds for change in changes if change.change is ChangeType.CREATED]
    assert gaps == [None, 2.005212, 0.002727, 1.00491]
