"""A Lease that flaps, on every page that shows Leases."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.board import running_board
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.watched_times import Connection, ConnectionState
from leases.models import WatchSpan
from tests.pages.conftest import remember, text_of
from tests.support.board import KEY
from tests.support.values.change_rows import to_row

SAYS = "6 changes of holder in 30 min, 2 holders; 30 s without a holder."


def changes(number: int = 6, *, minutes_ago: float = 0) -> list[Change]:
    first = datetime.now(UTC) - timedelta(minutes=minutes_ago, seconds=number)
    return [
        Change(
            cluster="a",
            namespace=KEY.namespace,
            name=KEY.name,
            uid="u",
            kind=Kind.ELECTION,
            change=ChangeType.TAKEN_OVER,
            at=first + timedelta(seconds=second),
            observed_at=first + timedelta(seconds=second),
            holder=f"cp-{second % 2}",
            resource_version=str(second),
            gap_seconds=5.0,
        )
        for second in range(number)
    ]


@pytest.fixture
def flapping(store):
    """The held Lease KEY flaps."""
    running_board().feeds["a"].activity.note(changes())
    return store


@pytest.fixture
def watched_lately(flapping):
    """KEY flaps, and somebody watches again since ten seconds before its first change."""
    since = datetime.now(UTC) - timedelta(seconds=16)
    watched = running_board().feeds["a"].activity.watched
    watched.record(Connection(state=ConnectionState.LIVE, since=since - timedelta(hours=2)))
    watched.stood_still(since - timedelta(minutes=1), since)
    return since


def tiles(html: str) -> list[str]:
    return re.findall(r'data-tile="([^"]+)"', html)


def rows(html: str) -> list[str]:
    return re.findall(r'data-key="([^"]+)"', html)


def test_the_list_has_it_above_the_others(flapping, operator):
    html = text_of(operator.get("/c/a/leases/"))
    assert rows(html)[0] == str(KEY)
    assert f'title="{SAYS}"' in html
    assert "6 in 30 min" in html
    assert html.count("is-held flaps") == 1


def test_the_list_can_be_narrowed_to_it(flapping, operator):
    assert rows(text_of(operator.get("/c/a/leases/?flapping=true"))) == [str(KEY)]
    html = text_of(operator.get("/c/a/leases/?phase=vacant&flapping=true"))
    assert rows(html) == [str(KEY), "apps/free"]
    chip = re.search(r'<a class="chip is-flapping on" href="([^"]+)".*?</a>', html, re.DOTALL)
    assert chip[1] == "/c/a/leases/?phase=vacant"
    assert re.search(r'data-count="flapping">1<', chip[0])
    assert re.search(r"All <span[^>]*>2<", html)


def test_an_empty_list_of_flapping_leases_says_so(store, operator):
    html = text_of(operator.get("/c/a/leases/?flapping=true"))
    assert "State is flapping." in html
    assert "Clear flapping" in html


def test_the_json_says_how_it_flaps(flapping, operator):
    (item,) = operator.get("/c/a/leases/?format=json&flapping=true").json()["items"]
    how = item["flapping"]
    assert (how["changes"], how["holders"], how["gap_seconds"]) == (6, 2, 30.0)
    assert (how["within_seconds"], how["counted_since"]) == (1800, None)
    assert datetime.fromisoformat(how["since"]) <= datetime.now(UTC)


def test_a_count_that_began_with_the_watching_says_since_when(watched_lately, operator):
    since = f"{watched_lately:%H:%M:%S}"
    says = SAYS.replace("in 30 min", f"since {since}")
    overview = text_of(operator.get("/c/a/"))
    assert says in overview
    assert "in 30 min" not in overview
    rows_of = text_of(operator.get("/c/a/leases/"))
    assert f'title="{says}"' in rows_of
    assert f"6 since {since[:5]}<" in rows_of
    assert f"6 changes<small>since {since}<" in text_of(operator.get("/c/a/wall/"))
    assert f"<small>{says}</small>" in text_of(operator.get(f"/c/a/leases/{KEY}/"))
    (item,) = operator.get("/c/a/leases/?format=json&flapping=true").json()["items"]
    assert datetime.fromisoformat(item["flapping"]["counted_since"]) == watched_lately


def test_all_problems_of_the_overview_has_it(flapping, operator):
    html = text_of(operator.get("/c/a/"))
    assert SAYS in html
    (url,) = set(re.findall(r'href="([^"]+)">All problems', html))
    listed = rows(text_of(operator.get(url.replace("&amp;", "&"))))
    assert listed == [str(KEY), "apps/free"]
    assert rows(html)[0] == str(KEY)  # of the elections


def test_the_wall_has_it_above_the_others_and_counts_it(flapping, operator):
    html = text_of(operator.get("/c/a/wall/"))
    assert tiles(html)[0] == str(KEY)
    assert "6 changes<small>in 30 min" in html
    assert re.search(r'data-count="flapping">1<', html)
    assert 'data-rank="0.6994"' in html


def test_a_wall_of_other_kinds_has_it_beside(flapping, operator):
    html = text_of(operator.get("/c/a/wall/?kind=lock"))
    assert tiles(html)[0] == str(KEY)
    assert "6 changes<small>" in html


def test_its_page_says_so_and_leads_to_its_last_hour(flapping, operator):
    html = text_of(operator.get(f"/c/a/leases/{KEY}/"))
    assert SAYS in html
    (url,) = re.findall(r'href="([^"]+)">Changes of the last hour', html)
    remember(ChangeType.TAKEN_OVER, holder="cp-7")
    page = text_of(operator.get(url.replace("&amp;", "&")))
    assert "cp-7" in page


def test_the_timeline_has_it_in_trouble(flapping, operator):
    now = datetime.now(UTC)
    since, until = now - timedelta(days=1), now + timedelta(minutes=1)
    WatchSpan.objects.create(cluster="a", process="p", since=since, until=until)
    html = text_of(operator.get("/c/a/timeline/"))
    assert re.findall(r'data-lane="([^"]+)"', html)[0] == str(KEY)
    assert "Without a holder now, late or flapping" in html
    assert re.search(r'title="Now: flapping" id="dot-kube-system/scheduler"', html)


def test_calm_pages_do_not_speak_of_it(store, operator):
    running_board().feeds["a"].activity.note(changes(2))
    running_board().feeds["a"].activity.note(changes(9, minutes_ago=31))
    for path in ("", "leases/", "wall/", f"leases/{KEY}/"):
        html = text_of(operator.get(f"/c/a/{path}"))
        assert "in 30 min" not in html
        assert " flaps" not in html


def test_it_flaps_after_a_restart_as_before(store, operator):
    for change in changes():
        to_row(change).save()
    running_board().feeds["a"].activity.read("a", datetime.now(UTC))
    assert rows(text_of(operator.get("/c/a/leases/?flapping=true"))) == [str(KEY)]
    assert SAYS in text_of(operator.get("/c/a/"))


def test_an_override_of_its_kind_ends_it(flapping, operator):
    update = flapping.set_overrides({KEY: (Kind.LOCK, "set by ada")}, datetime.now(UTC))
    assert update is not None
    assert rows(text_of(operator.get("/c/a/leases/?flapping=true"))) == []


def test_the_past_cannot_be_asked_for_it(flapping, operator):
    response = operator.get("/c/a/leases/?flapping=true&at=03:12&format=json")
    assert response.status_code == 400
    assert response.json()["error"].startswith("flapping cannot be asked of the past")


@pytest.mark.parametrize(("chosen", "first"), [("30m", "free"), ("1h", "scheduler")])
def test_the_sort_by_changes_counts_in_the_range(store, operator, chosen, first):
    activity = running_board().feeds["a"].activity
    activity.note(changes(9, minutes_ago=40))
    at = datetime.now(UTC)
    released = Change(
        cluster="a", namespace="apps", name="free", uid="u", kind=Kind.ELECTION,
        change=ChangeType.RELEASED, at=at, observed_at=at,
    )  # fmt: skip
    activity.note([released])
    html = text_of(operator.get(f"/c/a/leases/?sort=changes&range={chosen}"))
    assert rows(html)[0].endswith(first)
    seg = re.search(r'aria-label="Changes in the last">.*?</div>', html, re.DOTALL)[0]
    assert re.findall(r'aria-current="true">([^<]+)<', seg) == [
        {"30m": "30 min"}.get(chosen, "1 h")
    ]
