"""Recordings by name: made ones, and the recorded ones altered by a seed."""

from __future__ import annotations

from random import Random

from tests.support.incidents.recording import Recording, recordings
from tests.support.variants.altered import clocks_shifted, events_late, renamed, together, without
from tests.support.variants.worlds import BIG, WORLDS, made

# Recordings without an incident of the whole cluster can be played at once with another.
LOCAL = ("by-hand", "crashes", "handovers", "nodes-and-networks")
# The biggest are for the command line.
SUITE = (
    "mixed-1",
    "mixed-2",
    "mixed-3",
    "altered-1",
    *(f"{one}-1" for one in WORLDS if one not in BIG),
)


def variants(name: str) -> list[Recording]:
    """The variants of one name: `altered-SEED`, `mixed-SEED` or `WORLD-SEED`."""
    kind, _, seed = name.rpartition("-")
    if kind != "altered":
        return [made(name)]
    return altered(int(seed))


def altered(seed: int) -> list[Recording]:
    random = Random(seed)  # noqa: S311
    found = {one.name: one for one in recordings()}
    first, second = random.sample(LOCAL, 2)
    third = renamed(found[random.choice(LOCAL)], seed + 2)
    return [
        *(renamed(one, seed) for one in random.sample(list(found.values()), 3)),
        together(found[first], found[second], random.uniform(0, 60)),
        without(third, random.choice(("pods", "nodes", "events"))),
        events_late(third, 20),
        clocks_shifted(found[random.choice(LOCAL)], seed),
    ]
