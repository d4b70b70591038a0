"""Incidents as bands over the lanes concerned."""

from __future__ import annotations

import html
import re
from datetime import timedelta

from dashboard.board import running_board
from dashboard.parts.formatting import when
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Standing
from leases.domain.lease import ObjectName
from tests.pages.conftest import remember, text_of
from tests.support.board import KEY
from tests.support.values import incident_rows
from tests.support.values.incidents import an_incident, open_incident

OTHER = ObjectName("apps", "other")


def tell(*incidents) -> None:
    running_board().publisher.hubs["a"].going_on = lambda: incidents


def lane_of(page: str, key: ObjectName) -> str:
    return page.split(f'data-lane="{key}"')[1].split("</svg>\n  <div")[0]


def test_an_incident_is_a_band_on_the_lanes_concerned_with_its_sentence_and_link(
    store, operator, now
):
    remember(ChangeType.EXPIRED, seconds_ago=1800, holder="cp-1")
    incident = open_incident(KEY, began=now - timedelta(minutes=30))
    tell(incident)
    page = html.unescape(text_of(operator.get("/c/a/timeline/?range=1h")))
    says = f"Node down, likely, from {when(incident.began, now)} going on for 30 m "
    (x,) = re.findall(
        r'class="inc-link" href="/c/a/incidents/5e1f/"[^>]*>\s*<rect x="([\d.]+)%"',
        page.split("data-lane")[0],
    )
    assert 49 < float(x) < 51
    mine, other = lane_of(page, KEY), lane_of(page, OTHER)
    assert 'href="/c/a/incidents/5e1f/"' in mine
    assert says in mine
    assert incident.sentence in mine
    assert ", 1 incident." in mine
    assert "inc-" not in other


def test_what_went_as_planned_is_counted_beside_the_strip_and_has_no_band(store, operator, now):
    remember(ChangeType.EXPIRED, seconds_ago=1800, holder="cp-1")
    planned = {"cause": Cause.ROLLOUT, "standing": Standing.PLANNED}
    incident_rows.store(an_incident(id="meant", began=now - timedelta(minutes=20), **planned))
    page = html.unescape(text_of(operator.get("/c/a/timeline/?range=1h")))
    assert "0 incidents</a>" in page
    assert "1 with planned" in page
    assert "show=all" in page
    assert "/c/a/incidents/meant/" not in page
    incident_rows.store(an_incident(id="other", began=now - timedelta(minutes=10)))
    page = html.unescape(text_of(operator.get("/c/a/timeline/?range=1h")))
    assert "1 incident</a>" in page
    assert "2 with planned" in page


def test_incidents_too_close_together_are_one_band_that_leads_to_their_list(store, operator, now):
    tell(
        *(
            open_incident(KEY, id=f"i{n}", began=now - timedelta(minutes=30, seconds=n))
            for n in range(9)
        )
    )
    page = html.unescape(text_of(operator.get("/c/a/timeline/?range=24h")))
    mine = lane_of(page, KEY)
    assert mine.count('<a class="inc-link"') == 1
    assert "9 incidents, " in mine
    assert "/c/a/incidents/?from=" in mine
    assert "9 incidents</a>" in page


def test_a_stretch_without_incidents_has_no_row_for_them(store, operator, now):
    tell(open_incident(KEY, began=now))
    since, until = now - timedelta(hours=2), now - timedelta(hours=1)
    page = text_of(
        operator.get(
            f"/c/a/timeline/?from={since:%Y-%m-%dT%H:%M:%SZ}&to={until:%Y-%m-%dT%H:%M:%SZ}"
        )
    )
    assert "tl-incidents" not in page
