"""The causes of recorded incidents of which the truth is known, with Pods and from Leases alone."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

import pytest

from tests.support.incidents.play import play
from tests.support.incidents.recording import recordings
from tests.support.incidents.score import Score, table


async def test_nearly_all_causes_are_found_and_none_is_told_wrongly(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scores = [Score(one, play(one, alone=False)) for one in recordings()]
    with capsys.disabled():
        print(f"\nWith Pods, Nodes and Events\n{table(scores)}")
    assert _share(scores) >= 0.9, _complaints(scores)
    assert not [line for one in scores for line in (*one.wrong_certain, *one.innocent)]
    assert not [line for one in scores for line in (*one.merged, *one.split)]
    assert sum(one.false.total() for one in scores) == 0, _complaints(scores)


async def test_leases_alone_tell_most_causes_and_no_wrong_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scores = [Score(one, play(one, alone=True)) for one in recordings()]
    with capsys.disabled():
        print(f"\nFrom Leases alone\n{table(scores)}")
    assert _share(scores) >= 0.6, _complaints(scores)
    assert not [line for one in scores for line in (*one.wrong_certain, *one.innocent)]
    # A Pod that is preempted stops gracefully: Leases alone cannot tell who asked it to stop.
    assert sum(one.false.total() for one in scores) == 0, _complaints(scores)


LONGEST = 60.0  # seconds without a board


@pytest.mark.parametrize(
    "places",
    [pytest.param(1, marks=pytest.mark.brief), pytest.param(4, marks=pytest.mark.long)],
)
@pytest.mark.parametrize("alone", [False, True])
async def test_a_board_that_was_stopped_meanwhile_tells_no_wrong_cause(
    *, alone: bool, places: int
) -> None:
    random = Random(32 + places)  # noqa: S311 - places, no secret
    for recording in recordings():
        opened, ended = (datetime.fromisoformat(recording.truth[at]) for at in ("opened", "ended"))
        for _ in range(places):
            since = opened + random.uniform(0.1, 0.9) * (ended - opened)
            cut = since, since + timedelta(seconds=random.uniform(0.0, LONGEST))
            score = Score(recording, play(recording, alone=alone, cut=cut))
            wrong = [line for line in (*score.missed, *score.innocent) if _is_wrong(line)]
            assert not wrong, (recording.name, cut, wrong)
            assert not score.wrong_certain, (recording.name, cut)


def _is_wrong(line: str) -> bool:
    """Whether a cause was told that was none. Each loss of one that flaps was a crash."""
    told = line.startswith("false") or " likely: " in line or " certain: " in line
    missed = " (" in line.split(":")[0] and not line.startswith("false")
    return told and not missed and not line.startswith("false ['flap-external-secrets']: crash ")


def _share(scores: list[Score]) -> float:
    return sum(one.found.total() for one in scores) / sum(one.total.total() for one in scores)


def _complaints(scores: list[Score]) -> list[str]:
    return [f"{one.recording}: {line}" for one in scores for line in one.missed]
