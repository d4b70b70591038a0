"""The state of every instant of a small storm, beside the storm's own log."""

from __future__ import annotations

from argparse import Namespace

from tests.benchmarks.as_of_storm import run


def test_every_instant_is_as_the_storm_made_it(tmp_path):
    right, wrong = run(Namespace(seconds=9, leases=60, elections=40), tmp_path)
    assert wrong == []
    pages = ("leases", "timeline")
    assert {f"{page} {phase}" for page in pages for phase in ("held", "absent")} <= set(right)
