"""Lease, timeline, holders and history link to each other, and the links carry the time."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest

from leases.domain.change import ChangeType
from leases.domain.kind import Kind
from leases.models import WatchSpan
from tests.pages.conftest import HTMX, remember, text_of
from tests.support.board import KEY

AT = "2026-11-20T03:12:40Z"
STRETCH = {"from": "2026-11-20T03:00:00Z", "to": "2026-11-20T04:00:00Z"}
OF_HISTORY = {"since": STRETCH["from"], "until": STRETCH["to"]}
FIXED = "&".join(f"{name}={value}" for name, value in STRETCH.items())


@pytest.fixture(autouse=True)
def a_past(store, db):
    now = datetime.now(UTC)
    watched = {"since": now - timedelta(days=1), "until": now + timedelta(minutes=1)}
    WatchSpan.objects.create(cluster="a", process="p", **watched)
    remember(
        ChangeType.CREATED, seconds_ago=900, holder="cp-3_8c2e41f0-5b1d-4f0e-9a57-2d9a3c1b7e44"
    )
    remember(ChangeType.TAKEN_OVER, seconds_ago=60, holder="cp-1", previous_holder="cp-3")


def links(reader, path: str) -> list[tuple[str, dict[str, list[str]]]]:
    """The path and the query of each link in the main part of a page."""
    answer = reader.get(path)
    assert answer.status_code == 200
    main = text_of(answer).partition("<main")[2].partition("</main>")[0]
    found = [html.unescape(link) for link in re.findall(r'<a [^>]*?href="([^"]+)"', main)]
    split = [urlsplit(urljoin(path, link)) for link in found]
    return [(one.path, parse_qs(one.query)) for one in split]


def has(found, path: str, **query: str) -> bool:
    """Whether a link to the path has at least this query."""
    return any(
        where == path and all(given.get(name) == [value] for name, value in query.items())
        for where, given in found
    )


LEASE = {"namespace": KEY.namespace, "lease": KEY.name}


def test_a_lease_leads_to_its_lane_its_holder_and_its_changes(operator):
    found = links(operator, f"/c/a/leases/{KEY}/")
    assert has(found, "/c/a/timeline/", q=str(KEY))
    assert has(found, "/c/a/holders/cp-1/")
    assert has(found, "/c/a/history/", **LEASE)
    assert has(found, "/c/a/history/", **LEASE, format="csv", range="1h")


def test_the_stretch_of_a_leases_past_is_carried_on(operator):
    for query, timeline, history in (
        ("range=6h", {"range": "6h"}, {"range": "6h"}),
        (FIXED, STRETCH, OF_HISTORY),
        (f"{FIXED}&at={AT}", {"from": STRETCH["from"], "at": AT}, {"since": STRETCH["from"]}),
    ):
        found = links(operator, f"/c/a/leases/{KEY}/?{query}")
        assert has(found, "/c/a/timeline/", q=str(KEY), **timeline)
        assert has(found, "/c/a/history/", **LEASE, **history)
        assert has(found, "/c/a/history/", **LEASE, **history, format="csv")


def test_a_term_leads_to_what_its_holder_held_then(operator):
    found = links(operator, f"/c/a/leases/{KEY}/?range=1h")
    holders = {query["holder"][0] for path, query in found if "holder" in query and "at" in query}
    assert holders == {"cp-1", "cp-3"}


def test_a_lease_as_of_an_instant_leads_to_the_same_instant(operator):
    found = links(operator, f"/c/a/leases/{KEY}/?at={AT}")
    assert has(found, "/c/a/timeline/", q=str(KEY), at=AT)
    assert has(found, "/c/a/leases/", at=AT)
    assert has(found, "/c/a/history/", **LEASE, until="2026-11-20T03:12:41Z")
    assert has(found, "/c/a/history/", **LEASE, until="2026-11-20T03:12:41Z", format="csv")


def test_the_list_as_of_an_instant_leads_on(operator):
    remember(ChangeType.CREATED, seconds_ago=200, namespace="apps", name="other", holder="cp-7")
    at = re.search(r'href="[^"]*\?at=([^"&]+)"', text_of(operator.get("/c/a/history/")))
    assert at
    moment = parse_qs(f"at={at[1]}")["at"][0]
    found = links(operator, f"/c/a/leases/?at={moment}")
    assert has(found, "/c/a/timeline/", at=moment)
    assert has(found, "/c/a/history/", until=moment)
    assert has(found, "/c/a/leases/", holder="cp-1", at=moment)


def test_a_lane_leads_to_the_lease_its_holder_and_the_changes(operator):
    live = links(operator, "/c/a/timeline/?range=1h")
    assert has(live, f"/c/a/leases/{KEY}/", range="1h")
    assert has(live, "/c/a/leases/", holder="cp-1")
    assert has(live, "/c/a/history/", range="1h", kind="election")
    assert has(live, "/c/a/history/", range="1h", kind="election", format="csv")
    fixed = links(operator, f"/c/a/timeline/?{FIXED}&q=sched&at={AT}")
    assert has(fixed, f"/c/a/leases/{KEY}/", at=AT, **STRETCH)
    table = links(operator, f"/c/a/timeline/?{FIXED}&q=sched&at={AT}&view=table")
    assert has(table, f"/c/a/leases/{KEY}/", at=AT, **STRETCH)
    assert has(fixed, "/c/a/history/", **OF_HISTORY, q="sched")


def test_the_holder_on_the_timeline_carries_the_playhead(operator):
    change = operator.get("/c/a/history/?format=json").json()["items"][0]
    at = change["at"].replace("+00:00", "Z")
    found = links(operator, f"/c/a/timeline/?range=1h&at={at}")
    assert has(found, "/c/a/leases/", holder="cp-1", at=at)


def test_history_leads_to_the_lease_and_the_holder_as_of_each_change(operator):
    at = operator.get("/c/a/history/?format=json").json()["items"][0]["at"]
    for view in ("table", "sentences"):
        found = links(operator, f"/c/a/history/?view={view}")
        assert has(found, f"/c/a/leases/{KEY}/")
        assert has(found, f"/c/a/leases/{KEY}/", at=at)
    table = links(operator, "/c/a/history/")
    assert has(table, "/c/a/leases/", holder="cp-1", at=at)
    assert has(table, "/c/a/leases/", holder="cp-3", at=at)


@pytest.mark.parametrize(
    ("query", "there"),
    [
        ("", {}),
        ("range=24h", {"range": "24h"}),
        (f"since={OF_HISTORY['since']}&until={OF_HISTORY['until']}", STRETCH),
        (f"until={AT}", {"at": AT}),
        (f"since=2020-01-01T00:00:00Z&until={AT}", {"at": AT}),
        (f"lease={KEY.name}&namespace={KEY.namespace}", {"q": str(KEY)}),
        ("q=sched", {"q": "sched"}),
        ("namespace=apps", {"q": "apps"}),
        ("holder=cp-1&range=1h", {"holder": "cp-1", "range": "1h"}),
        ("kind=lock", {"kind": "lock"}),
    ],
)
def test_history_leads_to_the_timeline_of_the_same(operator, query, there):
    assert has(links(operator, f"/c/a/history/?{query}"), "/c/a/timeline/", **there)


def test_the_timeline_of_a_search_shows_all_kinds(operator):
    found = links(operator, "/c/a/history/?q=sched")
    (query,) = [query for path, query in found if path == "/c/a/timeline/"]
    assert set(query["kind"]) == set(Kind)


def test_a_holder_leads_to_its_leases_its_lanes_and_its_changes(operator):
    hosts = links(operator, "/c/a/holders/?range=1h")
    assert has(hosts, f"/c/a/leases/{KEY}/")
    assert has(hosts, "/c/a/holders/cp-1/")
    assert has(hosts, "/c/a/timeline/", holder="cp-1", range="1h")
    assert has(hosts, "/c/a/history/", q="cp-1", range="1h")
    host = links(operator, "/c/a/holders/cp-1/")
    assert has(host, "/c/a/leases/", holder="cp-1")
    assert has(host, "/c/a/incidents/", holder="cp-1", range="24h", show="all")
    identities = links(operator, "/c/a/holders/?group=identity")
    assert has(identities, "/c/a/history/", holder="cp-1", range="24h")


def lanes(reader, query: str) -> list[str]:
    items = reader.get(f"/c/a/timeline/?format=json&{query}").json()["items"]
    return [f"{item['namespace']}/{item['name']}" for item in items]


def test_the_timeline_of_a_holder_shows_what_it_holds_and_held(operator):
    assert lanes(operator, "holder=cp-1&range=1h&sort=name") == ["apps/other", str(KEY)]
    assert lanes(operator, "holder=cp-3&range=1h") == [str(KEY)]
    assert lanes(operator, "holder=cp-2") == []
    assert lanes(operator, "holder=cp-1&q=other") == ["apps/other"]
    assert lanes(operator, "holder=cp-1&kind=lock") == []


def test_the_timeline_of_a_holder_says_so_and_leads_out(operator):
    page = text_of(operator.get("/c/a/timeline/?holder=cp-1&range=1h", headers=HTMX))
    assert re.search(r"holder is <b>cp-1</b>", page)
    assert 'name="holder" value="cp-1"' in page, "the forms keep it"
    assert has(links(operator, "/c/a/timeline/?holder=cp-1&range=1h"), "/c/a/timeline/", range="1h")
    empty = text_of(operator.get("/c/a/timeline/?holder=nobody"))
    assert "holder is nobody" in empty


def test_a_refused_stretch_comes_back_in_its_form_also_for_a_file(operator):
    query = f"namespace={KEY.namespace}&lease={KEY.name}&since=tonight&until=06:00&format=csv"
    answer = operator.get(f"/c/a/history/?{query}", headers={"Accept": "text/html,*/*"})
    page = text_of(answer)
    assert answer.status_code == 400
    assert 'value="tonight"' in page
    assert 'value="06:00"' in page
    assert re.search(r'id="error-since">.*Since cannot be &#x27;tonight&#x27;', page, re.DOTALL)
    program = operator.get(f"/c/a/history/?{query}", headers={"Accept": "*/*"})
    assert program.status_code == 400
    assert "since cannot be" in program.json()["error"]


def test_a_lease_has_a_form_for_a_stretch_of_ones_own(operator):
    page = text_of(operator.get(f"/c/a/leases/{KEY}/"))
    form = re.search(r'<form class="stretch-form" action="([^"]+)".*?</form>', page, re.DOTALL)
    assert form
    assert form[1] == "/c/a/history/"
    assert f'name="namespace" value="{KEY.namespace}"' in form[0]
    assert f'name="lease" value="{KEY.name}"' in form[0]
    assert re.findall(r'name="(since|until|format)"', form[0]) == ["since", "until", "format"]


def test_every_chosen_stretch_leads_to_its_ranked_leases(store, operator):
    ends = "from=2026-11-20T03%3A00%3A00Z&amp;to=2026-11-20T04%3A00%3A00Z"
    for path in (
        f"/c/a/timeline/?{FIXED}",
        f"/c/a/leases/{KEY}/?{FIXED}",
        f"/c/a/history/?{'&'.join(f'{name}={value}' for name, value in OF_HISTORY.items())}",
    ):
        assert f"/c/a/history/stretch/?{ends}" in text_of(operator.get(path)), path
    for path in ("/c/a/timeline/?range=24h", "/c/a/history/?range=24h"):
        assert "/c/a/history/stretch/?range=24h" in text_of(operator.get(path)), path
