"""An incident over a time that nobody watched: no page calls that time held, or says never."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from leases import models
from leases.domain.change import ChangeType
from leases.domain.incident import Cause
from leases.domain.lease import ObjectName
from tests.pages.conftest import text_of
from tests.pages.incidents.incident_page import URL, keep, words
from tests.support.values.changes import T0, a_change

TAKEN, PASSED = ObjectName("work", "taken"), ObjectName("work", "passed")
HOUR = timedelta(hours=1)


def after(seconds: float):
    return T0 + timedelta(seconds=seconds)


@pytest.fixture
def outage(store, db) -> None:
    """Nobody watched from 4 s to 31 s. Meanwhile one Lease had no holder, and one passed on."""
    for since, until in ((T0 - HOUR, after(4)), (after(31), T0 + HOUR)):
        models.WatchSpan.objects.create(cluster="a", process="p", since=since, until=until)
    told = {"inferred": True, "inferred_since": after(4), "observed_at": after(31)}
    story = [
        a_change(30, change=ChangeType.TAKEN_OVER, namespace=key.namespace, name=key.name,
                 holder="b", previous_holder="a", gap_seconds=gap, **told)
        for key, gap in ((TAKEN, 9.3), (PASSED, None))
    ]  # fmt: skip
    keep(story, cause=Cause.API_OUTAGE, leases=(TAKEN, PASSED), worst_gap_seconds=None,
         ended=after(31), hosts=())  # fmt: skip


def test_the_page_says_at_most_how_long_nobody_held_it(outage, operator):
    text = words(operator.get(URL))
    assert "Worst without a holder none seen taken at most 9.3 s, none of it watched" in text
    assert "at most 9.3 s, none of it watched" in text.split("Who was affected")[1]
    assert "never" not in text
    assert "without a holder for at most 9.3 s, none of it watched." in text_of(operator.get(URL))
    assert "no time without a holder seen." in text_of(operator.get(URL))


def test_markdown_says_the_same(outage, operator):
    text = operator.get(f"{URL}?format=markdown").content.decode()
    assert "| Longest time without a holder | none seen |" in text
    assert "| Perhaps without a holder | at most 9.3 s, none of it watched: `work/taken` |" in text
    assert "| `work/taken` | `a` | `b` | at most 9.3 s, none of it watched |" in text
    assert "| `work/passed` | `a` | `b` | none seen |" in text


def test_the_list_says_that_none_was_seen(outage, operator):
    assert re.search(
        r'"incident-worst".*?none seen', text_of(operator.get("/c/a/incidents/")), re.DOTALL
    )


def test_the_lanes_are_hatched_where_nobody_watched(outage, operator):
    lanes = text_of(operator.get(URL)).split("Who held what")[1].split("<footer>")[0]
    (overlay,) = re.findall(r'<svg class="overlay".*?</svg>', lanes, re.DOTALL)
    ((x, width),) = re.findall(r'<rect class="fog"[^>]* x="([\d.]+)%" width="([\d.]+)%"', overlay)
    whole = 41  # seconds: five more at each end
    assert float(x) == pytest.approx(100 * 9 / whole, abs=1)
    assert float(width) == pytest.approx(100 * 27 / whole, abs=1)


def test_the_lanes_of_a_watched_incident_are_not_hatched(store, operator):
    models.WatchSpan.objects.create(cluster="a", process="p", since=T0 - HOUR, until=T0 + HOUR)
    keep([a_change(30)], leases=(TAKEN,), ended=after(31))
    assert 'class="overlay"' not in text_of(operator.get(URL))
