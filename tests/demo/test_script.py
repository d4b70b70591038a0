"""The demo's script: the same seed gives the same one, about those who are there, without end."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from leases.demo.names import ELECTIONS, NODES
from leases.demo.run import FLAPPING, OPENING, Act, Cue, script
from leases.domain.flapping import RULES
from leases.domain.kind import Kind

ELECTION_NAMES = {one.name for one in ELECTIONS}


def first(count: int, *, seed: int) -> list[Cue]:
    return list(islice(script(seed), count))


def test_the_same_seed_makes_the_same_script() -> None:
    assert first(500, seed=7) == first(500, seed=7)
    assert first(500, seed=7) != first(500, seed=8)


def test_everything_happens_in_order_of_time() -> None:
    times = [cue.at for cue in first(500, seed=1)]
    assert times == sorted(times)


def test_every_target_is_on_the_stage() -> None:
    nodes = set(NODES)
    for cue in first(1000, seed=3):
        known = {Act.NODE_DOWN: nodes, Act.API_RESTART: {""}}.get(cue.act, ELECTION_NAMES)
        assert cue.target in known


def test_the_opening_shows_every_act_in_the_first_two_minutes() -> None:
    assert {cue.act for cue in OPENING} == set(Act)
    assert max(cue.at for cue in OPENING) < 120


def test_every_act_comes_again_later() -> None:
    later = {cue.act for cue in first(1000, seed=2) if cue.at > 120}
    assert later == set(Act)


def test_an_incident_comes_every_few_minutes_and_one_lease_flaps() -> None:
    later = [cue for cue in first(3000, seed=4) if cue.at > OPENING[-1].at]
    minutes = (later[-1].at - later[0].at) / 60
    flaps = [cue for cue in later if cue.target == FLAPPING]
    assert 2 < minutes / (len(later) - len(flaps)) < 5
    rule = RULES[Kind.ELECTION]
    assert len(flaps) / minutes * (rule.within.total_seconds() / 60) > 2 * rule.number
    others = Counter(cue.target for cue in later if cue.target in ELECTION_NAMES - {FLAPPING})
    assert max(others.values()) / minutes * (rule.within.total_seconds() / 60) < rule.number / 2
