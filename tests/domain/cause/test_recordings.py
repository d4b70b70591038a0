"""The causes of recorded incidents of which the truth is known, with Pods and from Leases alone."""

from __future__ import annotations

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


def _share(scores: list[Score]) -> float:
    return sum(one.found.total() for one in scores) / sum(one.total.total() for one in scores)


def _complaints(scores: list[Score]) -> list[str]:
    return [f"{one.recording}: {line}" for one in scores for line in one.missed]
