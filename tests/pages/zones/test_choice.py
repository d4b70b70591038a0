"""A person chooses a zone; pages name it, links keep their moments, programs read UTC."""

from __future__ import annotations

import html
import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from leases.history.database import reach
from leases.models import Person, QuietTime, WallLink
from tests.pages.conftest import HTMX, text_of

BERLIN = 'data-zone="Europe/Berlin"'


def choose(browser, zone: str, to: str = "/c/a/history/"):
    return browser.post("/account/time-zone/", {"zone": zone, "next": to})


def read_in(browser, zone: str) -> None:
    """As `static/js/zone.js` does wherever it shows a page in this zone."""
    browser.cookies["zone"] = zone


def test_a_page_names_the_zone_that_its_reader_chose(store, operator, admin):
    assert "data-zone" not in text_of(operator.get("/c/a/"))
    answer = choose(operator, "Europe/Berlin")
    assert (answer.status_code, answer["Location"]) == (302, "/c/a/history/")
    assert BERLIN in text_of(operator.get("/c/a/"))
    assert "data-zone" not in text_of(admin.get("/c/a/"))
    choose(operator, "UTC")
    assert "data-zone" not in text_of(operator.get("/c/a/"))


def test_a_zone_is_of_the_list_and_leads_to_no_other_site(store, operator):
    refused = choose(operator, "Europe/Atlantis")
    assert refused.status_code == 400
    assert "There is no zone Europe/Atlantis. Choose from the list." in html.unescape(
        text_of(refused)
    )
    assert not Person.objects.exclude(zone="UTC").exists()
    assert choose(operator, "local", "https://example.org/")["Location"] == "/"
    assert 'data-zone="local"' in text_of(operator.get("/c/a/"))


def test_who_may_not_read_chooses_nothing(store, client, db):
    assert choose(client, "Europe/Berlin").status_code == 302
    assert not Person.objects.exists()


def test_the_zone_stays_while_the_database_is_away(store, operator, monkeypatch):
    choose(operator, "Europe/Berlin")
    operator.get("/c/a/")
    read_in(operator, "Europe/Berlin")
    monkeypatch.setattr(reach, "_failed", ("gone", time.monotonic()))
    assert BERLIN in text_of(operator.get("/c/a/leases/"))


def test_a_typed_time_becomes_the_moment_that_everybody_reads(store, operator):
    read_in(operator, "Europe/Berlin")
    answer = operator.get("/c/a/history/?since=2026-11-20T03:12&until=2026-11-20 04:12&kind=lock")
    moments = "since=2026-11-20T02%3A12%3A00Z&until=2026-11-20T03%3A12%3A00Z"
    assert answer.status_code == 302
    assert answer["Location"] == f"/c/a/history/?{moments}&kind=lock"
    assert operator.get(answer["Location"]).status_code == 200


@pytest.mark.parametrize("query", ["since=2026-11-20T03:12Z", "since=1 h", "kind=lock", ""])
def test_a_url_without_such_a_time_stays(store, operator, query):
    read_in(operator, "Europe/Berlin")
    assert operator.get(f"/c/a/history/?{query}").status_code == 200


def test_programs_and_pages_without_scripts_read_utc(store, operator):
    choose(operator, "Europe/Berlin")
    url = "/c/a/history/?since=2026-11-20T03:12"
    assert operator.get(url).status_code == 200
    read_in(operator, "Europe/Berlin")
    assert operator.get(f"{url}&format=json").status_code == 200
    assert operator.get(f"{url}&format=csv").status_code == 200


def test_a_time_that_clocks_show_twice_is_told(store, operator):
    read_in(operator, "Europe/Berlin")
    url = "/c/a/history/?since=2026-10-25T02:30&until=2026-10-25T04:00"
    answer = operator.get(url, follow=True)
    assert "25 Oct 2026 02:30:00 came twice in Europe/Berlin" in text_of(answer)
    part = operator.get(url, headers=HTMX)
    assert part["HX-Redirect"].startswith("/c/a/history/?since=2026-10-25T00%3A30%3A00Z&")


def test_an_end_that_is_still_to_come_is_told_on_the_page_of_the_moment(store, operator):
    read_in(operator, "Asia/Kolkata")
    later = datetime.now(UTC) + timedelta(hours=5, minutes=30 + 60)
    end = f"{later:%H:%M}"
    answer = operator.get(f"/c/a/history/?since=2 h&until={end}", follow=True)
    assert f"{end} is still to come: this ends now." in text_of(answer)


def test_a_mute_ends_at_a_time_of_the_zone(store, admin):
    read_in(admin, "Asia/Kolkata")
    given = {"since": "", "until": "2030-01-01 05:30", "reason": "moving", "sure": "on"}
    answer = admin.post("/notifications/quiet/", given)
    assert answer.status_code == 302, text_of(answer)
    assert QuietTime.objects.get().until == datetime(2030, 1, 1, tzinfo=UTC)


def test_a_wall_link_carries_its_zone(store, client, admin):
    made = {"name": "room", "clusters": ["a"], "zone": "Asia/Kolkata"}
    answer = admin.post("/wall-links/", made)
    assert WallLink.objects.get().zone == "Asia/Kolkata"
    (url,) = re.findall(r'value="(http://testserver[^"]+)"', text_of(answer))
    assert 'data-zone="Asia/Kolkata"' in text_of(client.get(url))
    assert "times in Asia/Kolkata" in text_of(admin.get("/wall-links/"))
