"""The lanes of several clusters on one time axis."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.board import install_board
from leases import models
from leases.domain.change import ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import WatchEnd
from leases.history import timeline_lanes
from leases.history.timeline_lanes import lost_between
from tests.pages.conftest import HTMX, remember, text_of
from tests.support.board import board_of

pytestmark = pytest.mark.django_db
PATH = "/timeline/"


@pytest.fixture
def three(tmp_path):
    """de lost two elections, us one for longer, eu none; all were watched all the time."""
    board = board_of(tmp_path, "de", "eu", "us")
    board.feeds["de"].labels = {"env": "prod"}
    now = datetime.now(UTC)
    for name in ("de", "eu", "us"):
        watched(name, now - timedelta(days=1), now)
    lose("de", "one", ago=600, gap=5)
    lose("de", "two", ago=590, gap=2)
    lose("us", "one", ago=601, gap=60)
    lose("eu", "beat", ago=600, gap=50, kind=Kind.HEARTBEAT)
    remember(ChangeType.REPLACED, seconds_ago=500, cluster="eu", name="calm", gap_seconds=0.0)
    yield board
    install_board(None)


def watched(cluster: str, since: datetime, until: datetime) -> None:
    models.WatchSpan.objects.create(
        cluster=cluster, process="p", since=since, until=until, ended=WatchEnd.CUT, detail=""
    )


def lose(cluster: str, name: str, *, ago: float, gap: float | None, **more) -> None:
    """It expired so long ago, and was without a holder for `gap` seconds; None: it still is."""
    at = {"cluster": cluster, "name": name, "namespace": "apps", "previous_holder": "cp-1"} | more
    remember(ChangeType.EXPIRED, seconds_ago=ago, **at)
    if gap is not None:
        held = {"holder": "cp-2", "gap_seconds": gap}
        remember(ChangeType.TAKEN_OVER, seconds_ago=ago - gap, **(at | held))


def lanes(browser, query: str = "") -> list[tuple[str, str]]:
    items = browser.get(f"{PATH}?format=json{query}").json()["items"]
    return [(one["cluster"], one["name"]) for one in items]


def test_elections_that_lost_their_holder_the_worst_cluster_first(three, operator):
    assert lanes(operator) == [("us", "one"), ("de", "one"), ("de", "two")]
    assert lanes(operator, "&cluster=de") == [("de", "one"), ("de", "two")]
    assert lanes(operator, "&env=prod") == [("de", "one"), ("de", "two")]
    assert lanes(operator, "&range=5m") == []
    assert lanes(operator, "&kind=heartbeat") == [("eu", "beat")]
    lose("eu", "gone", ago=3000, gap=None)  # nobody holds it since
    assert lanes(operator)[0] == ("eu", "gone")
    assert lanes(operator, "&range=15m")[0] == ("us", "one"), "it was lost before"


def test_a_page_has_few_lanes_of_each_cluster_and_leads_to_the_others(three, operator):
    for number in range(9):
        lose("de", f"more-{number}", ago=700, gap=1)
    text = text_of(operator.get(PATH))
    assert list(re.findall(r'class="tl tl-of"[^>]*label="(\w+)"', text)) == ["us", "de"]
    assert text.count("data-lane=") == 1 + 5
    assert re.search(r'<a class="link end" href="/c/de/timeline/\?range=6h">6 more</a>', text)
    assert "11 Leases lost their holder" in text
    assert "No election lost its holder in eu." in text
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids)), "Leases of one name in two clusters"
    answer = operator.get(f"{PATH}?format=json&limit=5").json()
    assert (answer["total"], len(answer["items"])) == (6, 1)
    rest = operator.get(answer["next"]).json()
    assert (len(rest["items"]), rest["next"]) == (5, None)


def test_what_was_not_watched_is_said_and_not_called_quiet(three, operator):
    now = datetime.now(UTC)
    assert "Not watched all the time" not in text_of(operator.get(PATH))
    models.WatchSpan.objects.filter(cluster="eu").delete()
    models.WatchSpan.objects.filter(cluster="de").update(until=now - timedelta(hours=1))
    for headers in ({}, HTMX):
        text = text_of(operator.get(PATH, headers=headers))
        said = text.split("Not watched all the time")[1].split("</p>")[0]
        assert re.search(r"de \(1 h", said)
        assert "eu (all of it)" in said
        assert "No election lost its holder in" not in text
        assert "us" not in re.findall(r"\b(\w+) \(", said)


def test_a_time_that_cannot_be_drawn_is_a_sentence(three, operator):
    refused = operator.get(f"{PATH}?from=2026-11-20T03:00:00Z")
    assert refused.status_code == 400
    assert "From and To belong together" in text_of(refused)
    assert operator.get(f"{PATH}?at=3000").status_code == 400
    empty = text_of(operator.get(f"{PATH}?env=test"))
    assert "No cluster matches" in empty


def test_the_sums_of_several_clusters_are_those_of_each(three):
    now = datetime.now(UTC)
    lose("us", "twice", ago=900, gap=3)
    lose("us", "twice", ago=800, gap=4)
    lose("us", "early", ago=4000, gap=1000)  # the stretch has the last 600 s of it
    since = now - timedelta(seconds=3600)
    found = lost_between(["de", "eu", "us"], [Kind.ELECTION], since, now)
    alone = [lost_between([name], [Kind.ELECTION], since, now) for name in ("de", "eu", "us")]
    assert found == {name: some for one in alone for name, some in one.items()}
    (early, one, twice) = found["us"].leases
    assert [each.key.name for each in found["us"].leases] == ["early", "one", "twice"]
    assert early.gap_seconds == pytest.approx(600, abs=2)
    assert (one.gap_seconds, one.times) == (60, 1)
    assert (twice.gap_seconds, twice.times) == (7, 2)
    assert found["de"].leases[0].key == ObjectName("apps", "one")


def test_a_busy_cluster_claims_no_loss_that_may_have_ended(three, operator, monkeypatch):
    """The newest changes that came to a holder begin after the old loss ended."""
    monkeypatch.setattr(timeline_lanes, "READ", 9)
    monkeypatch.setattr(timeline_lanes, "FEWEST", 3)
    for number in range(3):
        seconds = 300 - number
        remember(ChangeType.RESTARTED, seconds_ago=seconds, cluster="us", name=f"r-{number}")
    (one,) = lost_between(["us", "de", "eu"], [Kind.ELECTION], *last_hour())["us"].leases
    assert (one.key.name, one.gap_seconds) == ("one", 0)
    text = text_of(operator.get(f"{PATH}?cluster=us&cluster=de&cluster=eu"))
    assert "at least 1 Lease lost its holder" in text


def last_hour() -> tuple[datetime, datetime]:
    now = datetime.now(UTC)
    return now - timedelta(hours=1), now


def test_the_timeline_and_history_of_the_same_clusters_lead_to_each_other(three, operator):
    query = "cluster=de&cluster=us&range=1h"
    text = text_of(operator.get(f"{PATH}?{query}"))
    history = "/history/?cluster=de&amp;cluster=us&amp;range=1h&amp;kind=election"
    assert f'href="{history}"' in text
    back = text_of(operator.get(history.replace("&amp;", "&")))
    assert 'href="/timeline/?cluster=de&amp;cluster=us&amp;range=1h&amp;kind=election"' in back


def test_pages_over_all_clusters_lead_to_each_other_and_to_the_cluster(three, operator):
    for path in ("/?all", PATH, "/history/", "/incidents/"):
        nav = text_of(operator.get(path)).split('<nav class="nav"')[1].split("</nav>")[0]
        links = re.findall(r'href="([^"]+)"( aria-current="page")?', nav)
        assert [link for link, _ in links] == ["/?all", PATH, "/incidents/", "/history/"]
        assert [link for link, on in links if on] == [path]
    menu = text_of(operator.get("/c/de/history/")).split('<div class="pop">')[1]
    assert '<a href="/history/">' in menu, "the same page over all clusters"
    switched = operator.get("/c/de/switch/?from=/incidents/%3Fcluster%3Deu%26cause%3Dcrash")
    assert switched["Location"] == "/c/de/incidents/?cause=crash"
