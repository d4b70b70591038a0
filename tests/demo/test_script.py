"""The demo's script: the same seed gives the same one, about those who are there, without end."""

from __future__ import annotations

from itertools import islice, pairwise

from leases.demo.names import ELECTIONS, NODES
from leases.demo.schedule import OPENING, Act, Cue, script


def first(count: int, *, seed: int) -> list[Cue]:
    return list(islice(script(seed), count))


def test_the_same_seed_makes_the_same_script() -> None:
    assert first(500, seed=7) == first(500, seed=7)
    assert first(500, seed=7) != first(500, seed=8)


def test_everything_happens_in_order_of_time() -> None:
    times = [cue.at for cue in first(500, seed=1)]
    assert times == sorted(times)


def test_every_target_is_on_the_stage() -> None:
    elections, nodes = {one.name for one in ELECTIONS}, set(NODES)
    for cue in first(1000, seed=3):
        known = {Act.NODE_DOWN: nodes, Act.API_RESTART: {""}}.get(cue.act, elections)
        assert cue.target in known


def test_the_opening_shows_every_act_in_the_first_minute() -> None:
    assert {cue.act for cue in OPENING} == set(Act)
    assert max(cue.at for cue in OPENING) < 60


def test_every_act_comes_again_later() -> None:
    later = {cue.act for cue in first(1000, seed=2) if cue.at > 60}
    assert later == set(Act)


def test_the_pace_is_calm_for_ever() -> None:
    cues = first(3000, seed=4)
    per_minute = 60 * len(cues) / cues[-1].at
    assert 3 < per_minute < 10
    assert max(after.at - before.at for before, after in pairwise(cues)) < 30
