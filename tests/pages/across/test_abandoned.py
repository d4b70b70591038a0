"""Abandoned Leases, and one that may be vacant, on every page that shows Leases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from django.contrib.auth.models import User

from dashboard.board import running_board
from dashboard.live.messages import Show
from dashboard.live.page_reader import Elsewhere
from dashboard.parts.key_figures import last_day
from leases.actions.overrides import mark_may_be_vacant
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import Phase
from leases.domain.watched_times import Connection, ConnectionState
from leases.history.activity import Activity
from leases.history.overrides import load_marks
from leases.models import ChangeRecord, WatchSpan
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.wire.watch_decoding import Listed
from tests.pages.conftest import text_of
from tests.support.board import a_lease
from tests.support.values.change_rows import to_row
from tests.support.values.tracked_leases import tracked

NOW = datetime.now(UTC)
LISTED = NOW - timedelta(minutes=10)
OLD, OLDER, FRESH, HELD, MARKED = (
    ObjectName("apps", name) for name in ("a-old", "b-older", "c-fresh", "d-held", "e-marked")
)
LINE = "2 Leases abandoned"


def election(key: ObjectName, holder: str | None, *, hours: float) -> Lease:
    """Renewed or released so many hours before the first list."""
    lease = a_lease(key, holder=holder, now=LISTED - timedelta(hours=hours))
    spec = msgspec.structs.replace(lease.spec, lease_duration_seconds=24 * 3600)
    return msgspec.structs.replace(lease, spec=spec)


def save(update: Update | None) -> None:
    for change in update.changes if update else ():
        to_row(change).save()


@pytest.fixture
def store(board, db) -> Store:
    """Two abandoned elections, one vacant for ten minutes, one held, and one that may be vacant."""
    store = board.clusters["a"].store
    leases = (
        election(OLD, None, hours=2),
        election(OLDER, None, hours=30),
        election(FRESH, None, hours=0),
        election(HELD, "cp-1", hours=0),
        election(MARKED, None, hours=0),
    )
    save(store.replace(Listed(leases, "100"), LISTED))
    ada = User.objects.create(username="ann")
    mark_may_be_vacant(user=ada, cluster="a", key=MARKED, may_be_vacant=True, at=LISTED)
    store.set_overrides({}, LISTED, load_marks()["a"])
    save(store.turn(NOW))
    store.connection = Connection(state=ConnectionState.LIVE, since=LISTED)
    WatchSpan.objects.create(cluster="a", process="p", since=LISTED, until=NOW)
    return store


def rows(html: str) -> list[str]:
    return re.findall(r'data-key="apps/([^"]+)"', html)


def tiles(html: str) -> list[str]:
    return re.findall(r'data-tile="apps/([^"]+)"', html)


def test_the_overview_has_one_line_for_all_of_them_below_the_troubles(store, operator):
    html = text_of(operator.get("/c/a/"))
    panel = html.partition('id="attention"')[2].partition("</section>")[0]
    assert re.findall(r'class="name" href="([^"]+)">([^<]+)<', panel) == [
        ("/c/a/leases/apps/c-fresh/", "c-fresh"),
        ("/c/a/leases/?abandoned=true", LINE),
    ]
    assert "Vacant for more than 1 h, or never renewed: a-old and b-older." in panel
    assert '<span class="count">1</span>' in panel
    (url,) = set(re.findall(r'href="([^"]+)">All problems', panel))
    listed = text_of(operator.get(url.replace("&amp;", "&")))
    assert rows(listed) == ["c-fresh", "e-marked"]
    assert rows(html) == ["c-fresh", "d-held", "a-old", "b-older", "e-marked"]


def test_nothing_else_needs_attention(board, store, operator):
    store.set_overrides({FRESH: (Kind.LOCK, "set by ada")}, NOW, load_marks()["a"])
    html = text_of(operator.get("/c/a/"))
    panel = html.partition('id="attention"')[2].partition("</section>")[0]
    assert "Nothing needs attention" in panel
    assert LINE in panel
    assert "All problems" not in panel


def test_the_strip_counts_them_but_calls_them_no_trouble(store, operator):
    html = text_of(operator.get("/c/a/"))
    vacant = re.search(r'data-figure="vacant"\s+class="([^"]+)".*?</a>', html, re.DOTALL)
    assert "2 of them abandoned" in vacant[0]
    assert "bad" in vacant[1].split()
    assert store.excused() == [store.get(key) for key in (OLD, OLDER, MARKED)]
    store.set_overrides({FRESH: (Kind.LOCK, "set by ada")}, NOW, load_marks()["a"])
    html = text_of(operator.get("/c/a/"))
    vacant = re.search(r'data-figure="vacant"\s+class="([^"]+)"', html)
    assert "bad" not in vacant[1].split()


def test_an_open_gap_counts_unless_nobody_need_hold_the_lease():
    def seconds(ago: float = 60, **more: object) -> float:
        since = NOW - timedelta(seconds=ago)
        vacant = tracked(
            phase=Phase.VACANT, holder=None, gap_since=since, phase_since=since, now=NOW, **more
        )
        return last_day(0, Activity(), [vacant], NOW).gap_seconds

    assert seconds() == 60.0
    assert seconds(7200, abandoned=True) == 3600.0  # until it was
    assert seconds(may_be_vacant="ada") == 0.0


def test_the_gap_of_a_lease_that_was_abandoned_or_may_be_vacant_does_not_count(store):
    def after(key: ObjectName, seconds: float, change: ChangeType = ChangeType.ACQUIRED) -> float:
        hub = running_board().publisher.hubs["a"]
        hub.activity.unheld._gaps.restore({})  # as if it had not changed before
        before = hub.activity.unheld.seconds(NOW)
        made = Change(
            cluster="a", namespace=key.namespace, name=key.name, uid="u", kind=Kind.ELECTION,
            change=change, at=NOW, observed_at=NOW, holder="x", gap_seconds=seconds,
        )  # fmt: skip
        hub.publish(Update(cluster="a", now=NOW, seq=1, changes=(made,)))
        return hub.activity.unheld.seconds(NOW) - before

    assert after(FRESH, 3599.0) == pytest.approx(3599.0)
    assert after(FRESH, 3600.0) == pytest.approx(3600.0)
    assert after(FRESH, 4000.0) == pytest.approx(3600.0)  # until it was abandoned
    assert after(FRESH, 4000.0, ChangeType.TAKEN_OVER) == pytest.approx(4000.0)
    assert after(MARKED, 60.0) == 0.0
    assert after(MARKED, 60.0, ChangeType.RECOVERED) == pytest.approx(60.0)


def test_a_free_lock_is_drawn_as_no_problem_where_it_stood_before(store, operator):
    then = f"?at={NOW - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"
    store.set_overrides({FRESH: (Kind.LOCK, "set by ada")}, NOW, load_marks()["a"])
    ChangeRecord.objects.filter(name=FRESH.name).update(kind=Kind.LOCK)
    for query in ("", then):
        html = text_of(operator.get(f"/c/a/leases/{query}"))
        assert html.count("is-vacant excused") == 4
        assert html.count("<small>free</small>") == html.count("<small>may be vacant</small>")
        page = text_of(operator.get(f"/c/a/leases/{FRESH}/{query}"))
        assert "A vacant lock is only free" in page
        assert "ring is-vacant excused" in page
        items = operator.get(f"/c/a/leases/{query or '?'}&format=json").json()["items"]
        assert [item["name"] for item in items] == [
            "c-fresh", "d-held", "a-old", "b-older", "e-marked",
        ]  # fmt: skip


def test_the_list_has_them_last_and_can_be_narrowed_to_them(store, operator):
    html = text_of(operator.get("/c/a/leases/"))
    assert rows(html) == ["c-fresh", "d-held", "a-old", "b-older", "e-marked"]
    assert html.count("is-vacant excused") == 3
    assert html.count("<small>abandoned</small>") == 2 * html.count("<small>may be vacant</small>")
    chip = re.search(r'<a class="chip is-abandoned" href="([^"]+)".*?</a>', html, re.DOTALL)
    assert re.search(r'data-count="abandoned">2<', chip[0])
    html = text_of(operator.get(chip[1]))
    assert rows(html) == ["a-old", "b-older"]
    back = re.search(r'<a class="chip is-abandoned on" href="([^"]+)"', html)
    assert back[1] == "/c/a/leases/"
    assert '<input type="hidden" name="abandoned" value="true" form="filters">' in html


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("abandoned=true", ["a-old", "b-older"]),
        ("abandoned=true&q=old&sort=-name", ["b-older", "a-old"]),
        ("abandoned=true&namespace=web", []),
        ("abandoned=true&phase=held", []),
        ("abandoned=false", ["c-fresh", "d-held", "e-marked"]),
        ("abandoned=false&q=e", ["c-fresh", "d-held", "e-marked"]),
        ("abandoned=false&namespace=apps&sort=name", ["c-fresh", "d-held", "e-marked"]),
        ("abandoned=false&phase=vacant&limit=1&page=2", ["e-marked"]),
        ("sort=-state", ["a-old", "b-older", "e-marked", "d-held", "c-fresh"]),
    ],
)
def test_filters_of_the_json(store, operator, query, names):
    answer = operator.get(f"/c/a/leases/?format=json&{query}").json()
    assert [item["name"] for item in answer["items"]] == names
    assert answer["total"] == (2 if "limit=1" in query else len(names))
    for item in answer["items"]:
        assert item["abandoned"] is (item["name"] in ("a-old", "b-older"))
        assert item["may_be_vacant"] is (item["name"] == "e-marked")


def test_a_bad_filter_is_refused_and_an_empty_one_says_so(store, operator):
    page = operator.get("/c/a/leases/?abandoned=perhaps")
    assert page.status_code == 400
    assert "abandoned cannot be &#x27;perhaps&#x27;: use one of true, false." in text_of(page)
    html = text_of(operator.get("/c/a/leases/?abandoned=true&namespace=web"))
    assert "abandoned is true" in html
    assert "Clear abandoned" in html


def test_the_wall_folds_them_and_does_not_count_them(store, operator):
    html = text_of(operator.get("/c/a/wall/"))
    assert tiles(html) == ["c-fresh", "d-held", "e-marked"]
    assert LINE in html
    assert re.search(r'data-count="unexcused.vacant">1<', html)
    counts = running_board().publisher.hubs["a"].counts(NOW)
    assert counts["unexcused.vacant"] == 1
    assert (counts["vacant"], counts["abandoned"]) == (4, 2)
    assert tiles(text_of(operator.get("/c/a/wall/?abandoned=true"))) == ["a-old", "b-older"]


def test_a_wall_without_another_election_says_why(store, operator):
    lock = (Kind.LOCK, "set by ada")
    store.set_overrides({FRESH: lock, HELD: lock, MARKED: lock}, NOW)
    assert "All elections in a are abandoned." in text_of(operator.get("/c/a/wall/"))


def test_the_timeline_has_no_trouble_with_them_now_and_then(store, operator):
    html = text_of(operator.get("/c/a/timeline/"))
    group = html.partition("data-now-group")[2].partition("tl-group")[0]
    assert "c-fresh" in group
    assert "a-old" not in group
    assert "e-marked" not in group
    then = f"{NOW - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"
    html = text_of(operator.get(f"/c/a/timeline/?at={then}"))
    group = html.partition("Without a holder at")[2].partition("tl-group")[0]
    assert "c-fresh" in group
    assert "a-old" not in group
    assert "e-marked" not in group


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["c-fresh", "d-held", "a-old", "b-older", "e-marked"]),
        ("&abandoned=true", ["a-old", "b-older"]),
        ("&abandoned=false&phase=vacant", ["c-fresh", "e-marked"]),
    ],
)
def test_the_list_as_of_an_instant_says_the_same(store, operator, query, names):
    path = f"/c/a/leases/?at={NOW - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}{query}"
    items: list[Mapping[str, object]] = operator.get(f"{path}&format=json").json()["items"]
    assert [item["name"] for item in items] == names
    for item in items:
        assert item["abandoned"] is (item["name"] in ("a-old", "b-older"))
        assert item["may_be_vacant"] is (item["name"] == "e-marked")
    html = text_of(operator.get(path))
    assert html.count("is-vacant excused") == sum(
        "fresh" not in n and "held" not in n for n in names
    )
    assert re.search(r'class="chip is-abandoned[^"]*".*?<span class="n">2<', html, re.DOTALL)


def test_the_page_of_the_lease_says_so_now_and_then(store, operator):
    then = f"?at={NOW - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"
    says = {
        OLD: ("Abandoned: nobody is expected to hold it again", "It was abandoned"),
        MARKED: ("It may be vacant: ann said so.", "an admin had said so"),
    }
    for key, (now, past) in says.items():
        assert now in text_of(operator.get(f"/c/a/leases/{key}/"))
        assert past in text_of(operator.get(f"/c/a/leases/{key}/{then}"))
    for path in (f"/c/a/leases/{FRESH}/", f"/c/a/leases/{FRESH}/{then}"):
        assert "data-excuse" not in text_of(operator.get(path))


def test_the_threshold_of_the_process_counts_in_the_past_too(store, operator):
    store.abandoned_after = timedelta(hours=20)
    path = f"/c/a/leases/?at={NOW - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}&abandoned=true"
    items = operator.get(f"{path}&format=json").json()["items"]
    assert [item["name"] for item in items] == ["b-older"]
    page = f"/c/a/leases/{OLD}/?at={NOW - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"
    assert "data-excuse" not in text_of(operator.get(page))


def test_an_open_list_does_not_offer_them_as_new_problems(store):
    hub = running_board().publisher.hubs["a"]
    elsewhere = Elsewhere(Show(query=""), hub.activity)
    update = Update(cluster="a", now=NOW, seq=1, redraw=(OLD, FRESH, MARKED))
    elsewhere.notice(update, store, {HELD: None})
    assert elsewhere.news() == 1
