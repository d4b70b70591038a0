"""The causes of incidents in recordings that the rules were not made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tests.support.incidents.play import play
from tests.support.incidents.recording import Recording
from tests.support.incidents.score import Score, table
from tests.support.variants.suite import SUITE, variants

pytestmark = pytest.mark.long  # each class of them alone is in test_classes.py


@pytest.fixture(scope="module")
def recordings() -> list[Recording]:
    return [one for name in SUITE for one in variants(name)]


async def test_the_rules_hold_on_recordings_that_nobody_has_seen(
    recordings: list[Recording], capsys: pytest.CaptureFixture[str]
) -> None:
    scores = [Score(one, play(one, alone=False)) for one in recordings]
    _print(capsys, "With Pods, Nodes and Events", scores)
    assert _share(scores) >= 0.97, _all(scores, lambda one: one.missed)
    assert _all(scores, lambda one: [*one.wrong_certain, *one.innocent, *one.merged]) == []
    assert sum(one.false.total() for one in scores) <= 2, _all(scores, lambda one: one.missed)


async def test_leases_alone_tell_most_causes_of_such_recordings(
    recordings: list[Recording], capsys: pytest.CaptureFixture[str]
) -> None:
    scores = [Score(one, play(one, alone=True)) for one in recordings]
    _print(capsys, "From Leases alone", scores)
    assert _share(scores) >= 0.65, _all(scores, lambda one: one.missed)
    assert _all(scores, lambda one: [*one.wrong_certain, *one.innocent]) == []
    # A crash in the seconds in which a node dies may be one of its pods.
    assert len(_all(scores, lambda one: one.merged)) <= 1
    # An eviction that leaves time to stop looks like any graceful stop: that is only possible.
    assert sum(one.false.total() for one in scores) == 0, _all(scores, lambda one: one.missed)


def _print(capsys: pytest.CaptureFixture[str], title: str, scores: list[Score]) -> None:
    """Print the row of each cause: found of all, over all recordings."""
    lines = table(scores).splitlines()
    with capsys.disabled():
        print(f"\n{title}, {len(scores)} variants")
        print("\n".join(f"{line.split()[0]:20}{line.rsplit('  ', 1)[-1]}" for line in lines[1:]))


def _share(scores: list[Score]) -> float:
    return sum(one.found.total() for one in scores) / sum(one.total.total() for one in scores)


def _all(scores: list[Score], lines: Callable[[Score], Iterable[str]]) -> list[str]:
    return [f"{one.recording}: {line}" for one in scores for line in lines(one)]
