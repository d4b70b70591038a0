"""Who stands for a Lease, who should win it, and when a term is ended."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from leases.domain.election import (
    Candidate,
    CandidateSpec,
    CandidateState,
    elect,
    end_of_term,
    standing,
)
from leases.domain.lease import ObjectMeta
from tests.support.values.leases import NOON, after, lease

STREAMS = Path(__file__).parents[2] / "conformance" / "streams"


def candidate(
    name: str,
    emulation: str = "1.36.0",
    binary: str = "1.36.0",
    *,
    created: float = 0,
    renewed: float | None = 0,
    pinged: float | None = None,
    strategy: str = "OldestEmulationVersion",
) -> Candidate:
    return Candidate(
        ObjectMeta(name=name, creation_timestamp=after(created)),
        CandidateSpec(
            lease_name="demo",
            binary_version=binary,
            emulation_version=emulation,
            renew_time=None if renewed is None else after(renewed),
            ping_time=None if pinged is None else after(pinged),
            strategy=strategy,
        ),
    )


def test_the_oldest_emulation_version_wins():
    found = elect([candidate("a"), candidate("b", "1.9.0"), candidate("c", "1.10.0")], NOON)
    assert (found.winner, found.strategy) == ("b", "OldestEmulationVersion")
    assert found.why == "It has the oldest emulation version, 1.9.0."


def test_the_older_binary_of_equal_emulation_versions_wins():
    found = elect([candidate("a", binary="1.37.0"), candidate("b", binary="1.36.2")], NOON)
    assert found.winner == "b"
    assert found.why.endswith("also that of a; its binary version, 1.36.2, is older.")


def test_the_earlier_of_equal_versions_wins():
    found = elect([candidate("a", created=2), candidate("b", created=1)], NOON)
    assert found.winner == "b"
    assert found.why.endswith("it was created first.")


def test_a_pre_release_comes_before_its_release():
    assert elect([candidate("a", "1.36.0"), candidate("b", "1.36.0-rc.1")], NOON).winner == "b"


def test_a_single_candidate_wins():
    assert elect([candidate("a")], NOON).why == "It is the only candidate that counts."


@pytest.mark.parametrize(
    ("one", "now", "stands"),
    [
        (candidate("a"), 60, CandidateState.READY),
        (candidate("a", pinged=-1), 60, CandidateState.READY),
        (candidate("a", pinged=10), 14, CandidateState.ASKED),
        (candidate("a", pinged=10), 15, CandidateState.SILENT),
        (candidate("a"), 1800, CandidateState.READY),
        (candidate("a"), 1801, CandidateState.OUTDATED),
        (candidate("a", renewed=None), 0, CandidateState.OUTDATED),
        (candidate("a", emulation=""), 0, CandidateState.INVALID),
        (candidate("a", binary="v1.36"), 0, CandidateState.INVALID),
    ],
)
def test_a_candidate_counts_while_it_is_fresh_and_answers(one, now, stands):
    assert standing(one, after(now)) is stands


def test_a_silent_candidate_does_not_win():
    silent = candidate("best", "1.35.0", pinged=1)
    assert elect([silent, candidate("next")], after(3)).winner == "best"
    assert elect([silent, candidate("next")], after(6)).winner == "next"


def test_without_a_candidate_that_counts_nobody_wins():
    found = elect([candidate("a", renewed=None)], NOON)
    assert (found.winner, found.why) == (None, "No candidate counts.")


def test_the_newest_binary_version_decides_the_strategy():
    newest = candidate("a", binary="1.37.0", strategy="example.com/mine")
    found = elect([newest, candidate("b")], NOON)
    assert (found.winner, found.strategy) == (None, "example.com/mine")
    assert "another controller elects" in found.why


def test_a_quarrel_over_the_strategy_elects_nobody():
    found = elect([candidate("a", strategy="example.com/mine"), candidate("b")], NOON)
    assert (found.winner, found.strategy) == (None, None)
    assert "OldestEmulationVersion and example.com/mine" in found.why


def test_a_preferred_holder_ends_the_term_of_another():
    assert end_of_term(lease("a", strategy="OldestEmulationVersion", preferred="b")) == "b"
    assert end_of_term(lease("a", strategy="OldestEmulationVersion", preferred="a")) is None
    assert end_of_term(lease(None, strategy="OldestEmulationVersion", preferred="b")) is None
    assert end_of_term(lease("a", strategy="OldestEmulationVersion")) is None


def test_a_recorded_election_was_won_by_whom_the_rule_names():
    """Every holder that a real controller wrote, against the candidates it could see then."""
    name = STREAMS / "coordinated-election-candidates"
    lines = name.with_suffix(".ndjson").read_text().splitlines()
    arrivals = json.loads(name.with_suffix(".arrivals.json").read_text())
    times = [datetime.fromisoformat(text) for text in arrivals["arrival"]]
    opened = datetime.fromisoformat("2026-11-20T18:22:54.554218Z")
    # Seconds after the watch was opened, and whom the controller made the (preferred) holder.
    written = [
        (21.256, "cp-4_c3b9"), (35.198, "cp-4_c3b9"), (70.182, "cp-2_5f0c"), (80.325, "cp-4_c3b9"),
        (105.394, "cp-5_0be4"), (115.779, "cp-5_0be4"), (128.874, "cp-2_5f0c"),
        (145.271, "cp-2_5f0c"), (153.320, "cp-2_5f0c"),
    ]  # fmt: skip
    for seconds, winner in written:
        now = opened + timedelta(seconds=seconds)
        known: dict[str, Candidate] = {}
        for line, arrived in zip(lines, times, strict=True):
            if arrived > now:
                break
            event = json.loads(line)
            if event["type"] == "BOOKMARK":
                continue
            one = msgspec.convert(event["object"], Candidate)
            known[one.name] = one
            if event["type"] == "DELETED":
                del known[one.name]
        assert elect(known.values(), now).winner == winner, seconds
