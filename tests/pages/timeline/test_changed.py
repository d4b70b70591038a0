"""What lost or changed its holder in the stretch: lanes, groups, the foot and history agree."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest

from dashboard.pages.timeline import lane_query
from dashboard.parts.answer_cache import AnswerCache
from leases.domain.change import ChangeType
from leases.domain.lease import ObjectName
from tests.pages.conftest import remember, text_of
from tests.pages.timeline.conftest import OTHER
from tests.support.board import a_lease, fill

ONE = ObjectName("apps", "one")
CHANGED = "Lost or changed their holder in this stretch"
QUIET = "No change of holder"
C = ChangeType
LIFE = (300, C.CREATED)  # minutes ago
OF_THE_HOLDER = (C.EXPIRED, C.RELEASED, C.TAKEN_OVER, C.DELETED)
STORIES = {
    "released and not taken": ((LIFE, (30, C.RELEASED)), True),
    "expired and not taken": ((LIFE, (30, C.EXPIRED)), True),
    "expired and recovered": ((LIFE, (30, C.EXPIRED), (28, C.RECOVERED)), True),
    "expired and taken over": ((LIFE, (30, C.EXPIRED), (28, C.TAKEN_OVER)), True),
    "deleted": ((LIFE, (30, C.DELETED)), True),
    "created only": (((30, C.CREATED),), False),
    "released before and not taken": ((LIFE, (90, C.RELEASED)), False),
    "expired before and not taken": ((LIFE, (90, C.EXPIRED)), False),
    "released later": ((LIFE, (5, C.RELEASED)), False),
}
STRETCH = {"live": (60, 0), "past": (60, 10)}  # minutes ago


@pytest.fixture(autouse=True)
def nothing_totalled(monkeypatch):
    """Totals of a live stretch are kept for a second; the next test has another past."""
    monkeypatch.setattr(lane_query, "_totals", AnswerCache())


def tell(story) -> None:
    for minutes_ago, change in story:
        vacant = change in (C.RELEASED, C.DELETED)
        holder = {"holder": None if vacant else "cp-1", "previous_holder": "cp-1"}
        if change is C.TAKEN_OVER:
            holder["holder"] = "cp-2"
        remember(
            change,
            seconds_ago=minutes_ago * 60,
            namespace=ONE.namespace,
            name=ONE.name,
            **holder,
        )


def ends_of(now: datetime, stretch: str) -> str:
    since, until = (now - timedelta(minutes=minutes) for minutes in STRETCH[stretch])
    if stretch == "live":
        return "range=1h"
    return f"from={since:%Y-%m-%dT%H:%M:%SZ}&to={until:%Y-%m-%dT%H:%M:%SZ}"


def group_of(page: str, key: ObjectName) -> str:
    before = page.partition(f'data-lane="{key}"')[0]
    return re.findall(r'<div class="tl-group"><span[^>]*>([^<]*)</span>', before)[-1]


def moved_in_lane(item: dict) -> bool:
    """Whether its terms and gaps show that a holder lost it in the stretch."""
    ends = [term["until"] for term in item["terms"]]
    ends += [gap["since"] for gap in item["gaps"]]
    ends += [gap["since"] for term in item["terms"] for gap in term["gaps"]]
    return any(end is not None and item["from"] < end <= item["to"] for end in ends)


@pytest.mark.parametrize("stretch", STRETCH)
@pytest.mark.parametrize("story", STORIES)
def test_what_lost_or_changed_its_holder_agrees_with_lanes_and_history(
    store, operator, now, story, stretch
):
    told, changed = STORIES[story]
    if story == "released later" and stretch == "live":
        changed = True
    there = () if story == "deleted" else (a_lease(ONE),)
    fill(store, a_lease(OTHER), *there)
    tell(told)
    path = f"/c/a/timeline/?{ends_of(now, stretch)}&sort=changes"
    page = text_of(operator.get(path))
    assert group_of(page, ONE) == (CHANGED if changed else QUIET)
    assert group_of(page, OTHER) == QUIET
    assert f"{int(changed)} of 2 elections lost or changed their holder" in page
    items = operator.get(f"{path}&format=json").json()["items"]
    lanes = {item["name"] for item in items if moved_in_lane(item)}
    words = "&".join(f"change={change}" for change in OF_THE_HOLDER)
    ends = ends_of(now, stretch).replace("from=", "since=").replace("to=", "until=")
    rows = operator.get(f"/c/a/history/?{ends}&{words}&format=json").json()["items"]
    assert lanes == {row["name"] for row in rows} == ({ONE.name} if changed else set())
