"""Classes of incidents that rules once missed or invented: each is found by its cause."""

from __future__ import annotations

import pytest

from leases.domain.incident import Cause, Confidence
from tests.support.incidents.play import play
from tests.support.incidents.score import Score
from tests.support.variants.classes import CLASSES, made_class
from tests.support.variants.worlds import made

# A process that stands still and one that is cut off look the same from outside.
ONLY_POSSIBLE = {"paused"}


@pytest.mark.parametrize("name", sorted(CLASSES))
async def test_each_class_is_told_by_its_cause(name: str) -> None:
    recording = made_class(name, 1)
    played = play(recording, alone=False)
    score = Score(recording, played)
    assert not [*score.wrong_certain, *score.innocent, *score.merged]
    assert score.false.total() == 0, score.missed
    if name in ONLY_POSSIBLE:
        assert {one.confidence for one in played.incidents} == {Confidence.POSSIBLE}
    else:
        assert score.found == score.total, score.missed


@pytest.mark.parametrize("name", sorted(CLASSES))
async def test_from_leases_alone_no_class_is_told_wrongly(name: str) -> None:
    recording = made_class(name, 3)
    score = Score(recording, play(recording, alone=True))
    assert not [*score.wrong_certain, *score.innocent, *score.merged]
    assert score.false.total() == 0, score.missed


@pytest.mark.parametrize("name", ["all-pods-restart", "recreated", "containers-restart"])
async def test_pods_that_all_start_anew_are_at_no_time_told_as_scaled_down(name: str) -> None:
    told = play(made_class(name, 1), alone=False).tellings
    sure = [one for one in told if one.confidence is not Confidence.POSSIBLE]
    assert Cause.SCALED_DOWN not in {one.cause for one in sure}


async def test_what_speaks_against_a_dead_node_is_no_evidence_of_it() -> None:
    played = play(made("node-rebooted-2"), alone=False)
    (incident,) = [one for one in played.incidents if one.cause is Cause.NODE_DOWN]
    said = " ".join(one.sentence for one in incident.evidence)
    assert "was ready" not in said
    assert "not restarted before" not in said
