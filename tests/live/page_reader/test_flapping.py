"""A page learns when a Lease begins to flap, and when time alone ends it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dashboard import feed
from dashboard.live.messages import Show
from tests.live.page_reader.conftest import NOW, OTHER, write
from tests.support.board import KEY

HALF_AN_HOUR = 1800


def take(hub, number: int, key=KEY) -> None:
    """`number` changes of holder, a second apart."""
    for second in range(1, number + 1):
        holder = f"cp-{second + 1}"
        write(hub, seconds=second, version=str(second + 1), key=key, holder_identity=holder)


@pytest.mark.parametrize(("part", "said"), [
    ("row", "5 in 30 min"), ("tile", "5 changes<small>in 30 min"), ("lease", "Flapping: "),
])  # fmt: skip
def test_a_part_says_that_its_lease_flaps_until_it_does_not(page, hub, part, said):
    page.show(Show({part: [str(KEY)]}))
    take(hub, 4)
    assert said not in page.frame(NOW + timedelta(seconds=5))["html"][part][str(KEY)]
    write(hub, seconds=6, version="7", holder_identity="cp-9")
    assert said in page.frame(NOW + timedelta(seconds=7))["html"][part][str(KEY)]
    assert "html" not in page.frame(NOW + timedelta(seconds=9))
    later = page.frame(NOW + timedelta(seconds=HALF_AN_HOUR + 2))
    assert "flap" not in later["html"][part][str(KEY)]


def test_the_counts_of_a_page_have_the_leases_that_flap(page, hub):
    page.show(Show({}))
    assert page.frame(NOW)["counts"]["flapping"] == 0
    take(hub, 5)
    assert page.frame(NOW + timedelta(seconds=6))["counts"]["flapping"] == 1


@pytest.mark.parametrize("query", ["?kind=election", "?flapping=true"])
def test_a_lease_that_flaps_elsewhere_is_offered(page, hub, query):
    page.show(Show({"row": [str(KEY)]}, query=query))
    page.frame(NOW)
    take(hub, 4, OTHER)
    assert "elsewhere" not in page.frame(NOW + timedelta(seconds=5))
    write(hub, seconds=6, version="7", key=OTHER, holder_identity="cp-9")
    assert page.frame(NOW + timedelta(seconds=7))["elsewhere"] == 1


def test_a_lease_that_does_not_flap_is_not_offered_to_a_list_of_those_that_do(page, hub):
    page.show(Show({"row": [str(KEY)]}, query="?flapping=true"))
    page.frame(NOW)
    hub.publish(hub.store.turn(NOW + timedelta(seconds=18)))
    assert "elsewhere" not in page.frame(NOW + timedelta(seconds=18))


def test_many_leases_with_many_changes_are_judged_less_often(hub, monkeypatch):
    take(hub, 5)
    assert list(hub.flappers.at(NOW + timedelta(seconds=6))) == [KEY]
    monkeypatch.setattr(feed, "FEW", 0)
    monkeypatch.setattr(feed, "SPACING", 3600.0)
    assert list(hub.flappers.at(NOW + timedelta(seconds=7))) == [KEY]
    take(hub, 5, OTHER)
    assert list(hub.flappers.at(NOW + timedelta(seconds=8))) == [KEY]


def test_the_same_answer_is_the_same_object(hub):
    take(hub, 5)
    first = hub.flappers.at(NOW + timedelta(seconds=6))
    assert hub.flappers.at(NOW + timedelta(seconds=60)) is first
    write(hub, seconds=61, version="9", holder_identity="cp-9")
    assert hub.flappers.at(NOW + timedelta(seconds=61)) is not first


def test_no_more_leases_are_listed_than_a_page_can_judge(hub, monkeypatch):
    monkeypatch.setattr(feed, "MAX_FLAPPING", 1)
    take(hub, 5)
    take(hub, 6, OTHER)
    assert len(hub.flappers.at(NOW + timedelta(seconds=7))) == 1
