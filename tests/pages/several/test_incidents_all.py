"""The incidents of several clusters in one list: which, in what order, and what they share."""

from __future__ import annotations

import csv
import re
from datetime import timedelta

import msgspec
import pytest

from dashboard.board import install_board
from leases.domain.incident import Cause, Standing
from leases.domain.watched_times import ConnectionState
from tests.pages.conftest import HTMX, text_of
from tests.support.board import a_lease, board_of, connect, fill
from tests.support.every_url import consume
from tests.support.values.changes import T0, a_change
from tests.support.values.incident_rows import incident_with, store

pytestmark = pytest.mark.django_db
PATH = "/incidents/"


def keep(cluster: str, name: str, seconds: float, **more) -> None:
    """Store an incident that began so long after T0, with one change of its own."""
    at = T0 + timedelta(seconds=seconds)
    one = msgspec.structs.replace(a_change(1, at=at), cluster=cluster)
    known = {"cluster": cluster, "id": name, "began": at, "ended": at + timedelta(seconds=9)}
    store(incident_with(one, **(known | {"sentence": f"{name} burns"} | more)))


@pytest.fixture
def three(tmp_path):
    board = board_of(tmp_path, "de", "eu", "us")
    board.feeds["de"].labels = {"env": "prod"}
    board.feeds["us"].labels = {"env": "prod"}
    keep("de", "d1", 10)
    keep("eu", "e1", 30, hosts=("worker-7", "other"))
    keep("us", "u1", 3000)
    keep("us", "u2", 4000, standing=Standing.PLANNED)
    yield board
    install_board(None)


def ids(browser, query: str = "") -> list[str]:
    return [one["id"] for one in browser.get(f"{PATH}?format=json{query}").json()["items"]]


def test_all_clusters_or_those_of_the_url_newest_first(three, operator):
    assert ids(operator) == ["u2", "u1", "e1", "d1"]
    assert ids(operator, "&show=unplanned") == ["u1", "e1", "d1"]
    assert ids(operator, "&cluster=de&cluster=us") == ["u2", "u1", "d1"]
    assert ids(operator, "&env=prod&cluster=de") == ["d1"]
    assert ids(operator, "&env=test") == []
    assert ids(operator, "&cause=by_hand") == []
    refused = operator.get(f"{PATH}?format=json&cluster=de&cluster=nowhere")
    said = "cluster cannot be 'nowhere': no cluster is called so. Watched: de, eu and us."
    assert (refused.status_code, refused.json()) == (400, {"error": said})
    lines = list(csv.DictReader(consume(operator.get(f"{PATH}?format=csv")).splitlines()))
    assert [(one["cluster"], one["id"]) for one in lines] == [
        ("us", "u2"), ("us", "u1"), ("eu", "e1"), ("de", "d1"),
    ]  # fmt: skip


def test_pages_of_a_list_of_several_clusters_lose_and_repeat_nothing(three, operator):
    for number in range(9):  # three clusters in one moment
        keep(("de", "eu", "us")[number % 3], f"at-once-{number}", 500)
    found, url = [], f"{PATH}?format=json&limit=2"
    while url:
        answer = operator.get(url).json()
        found += [one["id"] for one in answer["items"]]
        url = answer["next"]
    assert found == ids(operator)
    assert len(set(found)) == len(found) == 13


def test_each_row_names_its_cluster_and_what_began_at_the_same_time(three, operator):
    text = text_of(operator.get(PATH))
    rows = {
        cluster: row
        for row in re.findall(r"<tr role=\"row\".*?</tr>", text, re.DOTALL)
        for cluster in re.findall(r'<a class="link" href="/c/(\w+)/">', row)
    }
    assert set(rows) == {"de", "eu", "us"}
    assert 'href="/c/eu/incidents/e1/"' in rows["de"]
    assert "a host is called worker-7 in both" in rows["de"]
    assert 'href="/c/de/incidents/d1/"' in rows["eu"]
    assert "Certain" in text.split("How sure we are")[1]
    assert "At the same time" not in rows["us"]
    story = text_of(operator.get("/c/de/incidents/d1/"))
    assert "At the same time as" in story
    assert 'href="/c/eu/incidents/e1/">an incident of eu</a>' in story
    assert "At the same time as" in text_of(operator.get("/c/de/incidents/"))


def test_programs_read_what_began_at_the_same_time(three, operator):
    d1, e1 = {"cluster": "de", "id": "d1"}, {"cluster": "eu", "id": "e1"}
    told = {"d1": [e1], "e1": [d1], "u1": [], "u2": []}
    items = operator.get(f"{PATH}?format=json").json()["items"]
    assert {one["id"]: one["same_time_as"] for one in items} == told
    (alone,) = operator.get("/c/de/incidents/?format=json").json()["items"]
    assert alone["same_time_as"] == [e1]
    assert operator.get("/c/de/incidents/d1/?format=json").json()["same_time_as"] == [e1]
    assert operator.get("/c/us/incidents/u1/?format=json").json()["same_time_as"] == []
    lines = list(csv.DictReader(consume(operator.get(f"{PATH}?format=csv")).splitlines()))
    assert {one["id"]: one["same_time_as"] for one in lines} == {
        "d1": "eu/e1", "e1": "de/d1", "u1": "", "u2": "",
    }  # fmt: skip
    document = operator.get("/api/openapi.json").json()
    schema = document["components"]["schemas"]["Incident"]
    assert "same_time_as" in schema["required"]


@pytest.mark.parametrize(
    ("seconds", "more", "beside"),
    [
        (60, {}, True),
        (60.001, {}, False),
        (-50, {"hosts": ()}, True),
        (0, {"cause": Cause.CRASH}, False),
        (0, {"standing": Standing.PLANNED}, False),
    ],
)
def test_beside_means_the_same_cause_within_a_minute_and_unplanned(
    board, operator, seconds, more, beside
):
    keep("a", "first", 0)
    keep("b", "second", seconds, **more)
    for page in ("/c/a/incidents/first/", "/c/b/incidents/second/"):
        assert ("At the same time as" in text_of(operator.get(page))) is beside


def test_what_a_cluster_cannot_tell_is_said(board, operator):
    """a is cut off, b was never read."""
    fill(board.clusters["a"].store, a_lease())
    connect(board, "a", ConnectionState.LIVE)
    told = operator.get(f"{PATH}?format=json").json()["not_live"]
    assert told == [{"cluster": "b", "connection": "connecting", "as_of": None}]
    assert "No incident in 1 cluster" in text_of(operator.get(f"{PATH}?cluster=a"))
    connect(board, "a", ConnectionState.STALE)
    for headers in ({}, HTMX):
        text = text_of(operator.get(PATH, headers=headers))
        assert "Not live, so that more may have happened there" in text
        assert re.search(r'href="/c/a/">a</a> \(as of [\d:]+\)', text)
        assert 'href="/c/b/">b</a> (not read yet)' in text
        assert "No unplanned incident is known" in text


@pytest.mark.parametrize("page", ["incidents", "history", "timeline"])
def test_people_with_one_cluster_are_led_to_its_page(tmp_path, operator, page):
    board_of(tmp_path, "de")
    answer = operator.get(f"/{page}/?range=24h&cluster=de")
    assert (answer.status_code, answer["Location"]) == (302, f"/c/de/{page}/?range=24h")
    assert operator.get(f"/{page}/?cluster=eu").status_code == 400
    assert operator.get(f"/{page}/?format=json").json()["items"] == []
    nav = text_of(operator.get(f"/c/de/{page}/")).split('<nav class="nav"')[1].split("</nav>")[0]
    assert f'href="/c/de/{page}/" aria-current="page"' in nav
    install_board(None)
