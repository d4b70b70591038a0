"""All clusters on one page: their order, their figures, and what is said of one that is cut off."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from functools import partial

import msgspec
import pytest

from dashboard.board import install_board
from dashboard.config import ClusterSpec
from dashboard.feed import PROCESS
from dashboard.pages.fleet import FEW, told
from dashboard.serving.runtime import Options, Runtime
from leases.domain.incident import Incident, Standing
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.kube.cluster_source import ClusterSource, SourceKind
from leases.wire.microtime import format_microtime
from leases.wire.watch_decoding import Listed
from tests.pages.conftest import HTMX, text_of
from tests.support.board import a_lease, board_of, connect, fill
from tests.support.values.changes import a_change
from tests.support.values.incident_rows import incident_with

pytestmark = pytest.mark.django_db
LATER = ObjectName("apps", "later")


@pytest.fixture
def make_board(tmp_path):
    yield partial(board_of, tmp_path)
    install_board(None)


def vacate(board: Runtime, name: str) -> None:
    """One of its two elections has no holder."""
    fill(board.clusters[name].store, a_lease(), a_lease(LATER, holder=None))


def incident(name: str, **more) -> Incident:
    one = incident_with(a_change(1), id=f"of-{name}", ended=None)
    return msgspec.structs.replace(one, **{"cluster": name, "sentence": f"{name} burns"} | more)


def go_on(board: Runtime, name: str, *some: Incident) -> None:
    board.feeds[name].going_on = lambda: some
    board.publisher.hubs[name].incidents_moved()


def strips(text: str) -> dict[str, str]:
    """The strips by the name of their cluster, in their order, without tags."""
    found = re.findall(r'<li id="strip-([^"]+)"[^>]*>(.*?)</li>', text, re.DOTALL)
    return {name: " ".join(re.sub(r"<[^>]+>", " ", body).split()) for name, body in found}


def cells(text: str) -> list[str]:
    return re.findall(r'<li id="cell-([^"]+)"', text)


def items(client, query: str = "") -> list[dict]:
    answer = client.get(f"/?format=json{query}").json()
    assert answer["total"] == len(answer["items"])
    return answer["items"]


def test_the_page_says_which_drawings_it_has(make_board, operator, monkeypatch):
    make_board("one", "two")
    monkeypatch.setattr(told, "number", 7)
    assert f'data-drawn="{PROCESS}-7"' in operator.get("/").content.decode()
    assert told.number == 9, "two strips were drawn for it"
    assert operator.get("/", headers=HTMX)["X-Drawn"] == f"{PROCESS}-9"


def test_one_cluster_leads_to_it_and_programs_get_a_list_of_one(make_board, operator):
    make_board("alone")
    assert operator.get("/").url == "/c/alone/"
    assert [one["cluster"] for one in items(operator)] == ["alone"]


def test_without_a_cluster_the_page_says_so(make_board, operator):
    make_board()
    assert "No cluster is watched" in text_of(operator.get("/"))


def test_who_may_not_read_sees_no_strip(make_board, guest, client):
    make_board("one", "two")
    assert guest.get("/").status_code == 403
    assert "strip-one" not in text_of(guest.get("/"))
    assert client.get("/").url == "/sign-in/?next=/"
    assert client.get("/?format=json").status_code == 401


def test_the_worst_comes_first(make_board, operator):
    board = make_board("calm", "waits", "burns", "cut", "free")
    go_on(board, "burns", incident("burns"))
    go_on(board, "waits", incident("waits", unheld_since=datetime.now(UTC)))
    connect(board, "cut", ConnectionState.STALE)
    vacate(board, "free")
    order = ["waits", "burns", "cut", "free", "calm"]
    assert list(strips(text_of(operator.get("/")))) == order
    found = items(operator)
    assert [one["cluster"] for one in found] == order
    assert [one["trouble"] for one in found] == [
        "incident", "incident", "not_live", "leases", "none",
    ]  # fmt: skip


def test_a_strip_shows_the_version_of_its_api_server_once_it_is_known(make_board, operator):
    board = make_board("new", "old")
    board.feeds["new"].server_version = "v1.34.1"
    found = strips(text_of(operator.get("/")))
    assert ("v1.34.1" in found["new"], "v1." in found["old"]) == (True, False)
    assert {one["cluster"]: one["version"] for one in items(operator)} == {
        "new": "v1.34.1", "old": None,
    }  # fmt: skip


def label(board: Runtime, **labels: str) -> None:
    """Each cluster by the value of its `env`."""
    for name, env in labels.items():
        board.feeds[name].labels = {"env": env, "region": "eu"}


def groups(text: str) -> dict[str, list[str]]:
    """The clusters of each group, in the order of the page."""
    parts = re.split(r'<section class="panel" data-ranks aria-label="([^"]*)">', text)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name: re.findall(r'<li id="(?:strip|cell)-([^"]+)"', body) for name, body in pairs}


def test_clusters_are_grouped_by_a_label_and_the_group_with_the_worst_comes_first(
    make_board, operator
):
    board = make_board("calm", "burns", "free", "bare")
    label(board, calm="prod", burns="test", free="prod")
    go_on(board, "burns", incident("burns"))
    vacate(board, "free")
    page = text_of(operator.get("/?by=env"))
    assert groups(page) == {
        "env test": ["burns"], "env prod": ["free", "calm"], "no env": ["bare"],
    }  # fmt: skip
    assert "2 clusters, 1 in trouble" in page
    assert "1 cluster, none in trouble" in page
    assert [one["cluster"] for one in items(operator, "&by=env")] == [
        "burns", "free", "calm", "bare",
    ]  # fmt: skip
    assert "env=test, region=eu" in strips(page)["burns"]
    assert "data-ranks" in text_of(operator.get("/"))
    assert groups(text_of(operator.get("/"))) == {}


def test_quiet_clusters_of_a_group_are_cells(make_board, operator):
    board = make_board(*(f"c{n}" for n in range(FEW + 1)))
    label(board, **{f"c{n}": ("prod", "test")[n % 2] for n in range(FEW + 1)})
    vacate(board, "c3")
    page = text_of(operator.get("/?by=env"))
    assert list(strips(page)) == ["c3"]
    assert groups(page)["env test"][0] == "c3"
    assert len(cells(page)) == FEW


def test_clusters_are_filtered_by_labels(make_board, operator):
    board = make_board("one", "two", "three")
    label(board, one="prod", two="test")
    assert [one["cluster"] for one in items(operator, "&env=prod")] == ["one"]
    assert {one["cluster"]: one["labels"] for one in items(operator, "&region=eu")} == {
        "one": {"env": "prod", "region": "eu"}, "two": {"env": "test", "region": "eu"},
    }  # fmt: skip
    page = text_of(operator.get("/?env=test&by=region&limit=1"))
    assert list(strips(page)) == ["two"]
    assert "<option selected>test</option>" in page
    assert '<option value="region" selected>' in page
    assert "No cluster matches this filter" in text_of(operator.get("/?env=none"))
    assert "<option selected>none</option>" in text_of(operator.get("/?env=none"))
    part = operator.get("/?env=test&q=&by=", headers=HTMX)
    assert part["HX-Push-Url"] == "/?env=test"


def test_a_label_that_no_cluster_has_groups_nothing(make_board, operator):
    board = make_board("one", "two")
    said = "by cannot be &#x27;env&#x27;: no cluster has a label."
    assert said in text_of(operator.get("/?by=env"))
    label(board, one="prod")
    answer = operator.get("/?by=team&env=prod")
    assert answer.status_code == 400
    assert "use one of env, region." in text_of(answer)
    assert "<option selected>prod</option>" in text_of(answer)


def test_only_what_was_not_planned_counts_and_the_gravest_is_named(make_board, operator):
    board = make_board("a", "b")
    small, large = incident("a", sentence="small"), incident("a", id="large", sentence="large")
    large = msgspec.structs.replace(large, leases=(*large.leases, LATER))
    planned = incident("a", id="planned", standing=Standing.PLANNED)
    go_on(board, "a", small, planned, large)
    go_on(board, "b", incident("b", standing=Standing.PLANNED))
    said = strips(text_of(operator.get("/")))
    assert "large" in said["a"]
    assert "2 Incidents" in said["a"]
    assert "No Lease is in trouble." in said["b"]
    assert [(one["incident"], one["incidents"]) for one in items(operator)] == [
        ("large", 2), (None, 0),
    ]  # fmt: skip


def test_a_cluster_is_live_since_somebody_watches_it_without_a_break(make_board, operator):
    board = make_board("a", "b")
    connect(board, "a", ConnectionState.LIVE, ago=300)
    stopped, went_on = (datetime.now(UTC) - timedelta(seconds=ago) for ago in (60, 30))
    board.feeds["a"].activity.watched.stood_still(stopped, went_on)
    said = strips(text_of(operator.get("/")))["a"]
    assert f"live since {went_on:%H:%M:%S}" in said
    assert items(operator)[0]["since"] == format_microtime(went_on)


def test_a_planned_incident_that_goes_on_is_not_denied(make_board, operator):
    board = make_board("a", "b")
    vacate(board, "a")
    planned = [incident("a", id=str(number), standing=Standing.PLANNED) for number in (1, 2)]
    go_on(board, "a", *planned)
    vacate(board, "b")
    go_on(board, "b", planned[0])
    said = strips(text_of(operator.get("/")))
    assert "1 vacant election; only 2 planned incidents go on." in said["a"]
    assert "1 vacant election; only 1 planned incident goes on." in said["b"]


def test_leases_in_trouble_are_counted_without_those_that_are_excused(make_board, operator):
    board = make_board("a", "b")
    vacate(board, "a")
    assert "1 vacant election; no incident goes on." in strips(text_of(operator.get("/")))["a"]
    assert items(operator)[0]["in_trouble"] == {"vacant": 1}
    store = board.clusters["a"].store
    store.set_overrides({}, datetime.now(UTC), {LATER: True})
    assert items(operator)[0]["in_trouble"] == {}


def test_the_sentence_counts_the_elections_of_what_the_figure_counts(make_board, operator):
    board = make_board("a", "b")
    lock, other = ObjectName("apps", "lock"), ObjectName("apps", "other")
    store = board.clusters["a"].store
    vacant = [a_lease(one, holder=None) for one in (LATER, lock)]
    fill(store, a_lease(), *vacant)
    store.set_overrides({lock: (Kind.LOCK, "set by ada")}, datetime.now(UTC))
    said = strips(text_of(operator.get("/")))["a"]
    assert "1 vacant election; no incident goes on." in said
    assert "2 Vacant" in said
    assert 'title="1 election, 1 lock"' in text_of(operator.get("/"))
    fill(store, *vacant, a_lease(other, holder=None))
    assert items(operator)[0]["sentence"] == "2 vacant elections; no incident goes on."


def test_a_cluster_that_is_cut_off_says_since_when(make_board, operator):
    board = make_board("a", "b", "c", "d")
    at = datetime.now(UTC) - timedelta(seconds=60)
    connect(board, "a", ConnectionState.STALE, detail="It does not answer.")
    connect(board, "b", ConnectionState.REFUSED)
    board.clusters["c"].store.connection = Connection(state=ConnectionState.CONNECTING, since=at)
    text = text_of(operator.get("/"))
    said = strips(text)
    assert re.search(rf"stale since (\d+ \w+ \d+ )?{at:%H:%M}:\d\d", said["a"])
    assert re.search(r"Shows what was known at .*\d\d:\d\d:\d\d\. It does not answer\.", said["a"])
    assert "no access since" in said["b"]
    assert "connecting since" in said["c"]
    assert "live since" in said["d"]
    dimmed = re.findall(r'id="strip-(\w)"[^>]*>\s*<div class="[^"]*\bnot-live"', text)
    assert sorted(dimmed) == ["a", "b", "c"]
    cut = next(one for one in items(operator) if one["cluster"] == "a")
    assert cut["connection"] == "stale"
    assert cut["as_of"] == cut["since"] < items(operator)[-1]["as_of"]


def test_an_incident_of_a_cluster_that_is_cut_off_is_the_worst_that_is_known(make_board, operator):
    board = make_board("a", "b")
    connect(board, "a", ConnectionState.STALE, detail="It does not answer.")
    go_on(board, "a", incident("a"))
    cut = items(operator)[0]
    assert (cut["cluster"], cut["trouble"], cut["sentence"]) == ("a", "incident", "a burns")
    said = strips(text_of(operator.get("/")))["a"]
    assert re.search(r"a burns Shows what was known at .+; since .+\. It does not answer\.", said)
    assert 'class="in-fleet is-expired not-live"' in text_of(operator.get("/"))
    wall = text_of(operator.get("/wall/fleet/"))
    assert re.search(r'a burns <span class="note">Shows what was known at [^;]+\.</span>', wall)
    connect(board, "a", ConnectionState.PAUSED)
    paused = next(one for one in items(operator) if one["cluster"] == "a")
    assert paused["trouble"] == "none"
    assert paused["sentence"].startswith("Shows what was known at ")


def test_a_cluster_that_was_never_read_has_no_counts(tmp_path, operator):
    source = ClusterSource(SourceKind.IN_CLUSTER)
    specs = tuple(ClusterSpec(name, source) for name in ("a", "b"))
    install_board(Runtime(Options(clusters=specs, data=tmp_path)))
    assert "? Held" in strips(text_of(operator.get("/")))["a"]
    assert "Not read yet." in strips(text_of(operator.get("/")))["a"]
    first = items(operator)[0]
    assert (first["leases"], first["phases"], first["as_of"]) == (None, None, None)
    install_board(None)


def test_its_figures_are_those_of_each_overview(make_board, operator):
    """One question has one answer; the unwatched part of a day is said in the same words."""
    board = make_board("a", "b")
    vacate(board, "a")
    now = datetime.now(UTC)
    for number in range(3):
        taken = a_lease(version=str(200 + number), holder=f"cp-{number + 2}", now=now)
        assert list_again(board, "a", taken, a_lease(LATER, holder=None))
    for name in ("a", "b"):
        overview = figures_of(text_of(operator.get(f"/c/{name}/")))
        strip = strips(text_of(operator.get("/")))[name]
        for label in ("Leases", "Held", "Late", "Expired", "Vacant", "Untimed"):
            assert f"{overview[label][0]} {label}" in strip
        assert f"{overview['Holder changes, 24 h'][0]} Holder changes, 24 h" in strip
        amount, caption = overview["Without holder, 24 h"]
        assert re.search(r"elections, summed, since \d\d:\d\d", caption)
        assert f"Without holder, 24 h; {caption}" in strip
        assert amount.split()[-1] in strip
        item = next(one for one in items(operator) if one["cluster"] == name)
        assert item["phases"]["vacant"] == int(overview["Vacant"][0])
        assert item["holder_changes"] == int(overview["Holder changes, 24 h"][0])
        assert item["holder_changes"] == sum(item["holder_changes_by_hour"])
        assert item["unwatched_seconds"] > 0


def list_again(board: Runtime, name: str, *leases) -> bool:
    """The cluster has these Leases now; whether that changed anything."""
    update = board.clusters[name].store.replace(Listed(leases, "300"), datetime.now(UTC))
    board.publisher.publish(update)
    return bool(update.changes)


def figures_of(text: str) -> dict[str, tuple[str, str]]:
    """The key figures of an overview: number and caption by label."""
    found = {}
    for body in re.findall(r'class="kpi[^"]*"\s+href="[^"]*">(.*?)</a>', text, re.DOTALL):
        parts = re.search(
            r'class="k">(.*?)</span>\s*<span class="v"[^>]*>(.*?)</span>\s*<span class="d">(.*?)<',
            body, re.DOTALL,
        )  # fmt: skip
        plain = (re.sub(r"<[^>]+>", " ", one) for one in parts.groups())
        label, value, caption = (" ".join(one.split()) for one in plain)
        found[label] = (value, html.unescape(caption))
    return found


def test_the_filter_finds_parts_of_names_in_any_case(make_board, operator):
    make_board("Prod-eu", "prod-us", "edge")
    assert list(strips(text_of(operator.get("/?q=PROD")))) == ["Prod-eu", "prod-us"]
    assert [one["cluster"] for one in items(operator, "&q=pROD")] == ["Prod-eu", "prod-us"]
    assert "No cluster matches" in text_of(operator.get("/?q=nowhere"))
    part = operator.get("/?q=us", headers=HTMX)
    assert list(strips(text_of(part))) == ["prod-us"]
    assert "<html" not in text_of(part)
    assert part["HX-Push-Url"] == "/?q=us"


def test_many_clusters_are_cells_but_for_those_in_trouble(make_board, operator):
    names = [f"c{number:02}" for number in range(FEW + 1)]
    board = make_board(*names)
    assert "Nothing is wrong" in text_of(operator.get("/"))
    go_on(board, "c05", incident("c05"))
    text = text_of(operator.get("/"))
    assert list(strips(text)) == ["c05"]
    assert cells(text) == [name for name in names if name != "c05"]
    few = text_of(operator.get("/?q=c0"))
    assert len(strips(few)) == 10
    assert not cells(few)


def test_a_page_of_them_can_be_asked_for(make_board, operator):
    make_board("a", "b", "c")
    answer = operator.get("/?format=json&limit=2").json()
    assert [one["cluster"] for one in answer["items"]] == ["a", "b"]
    assert operator.get(answer["next"]).json()["items"][0]["cluster"] == "c"
    assert list(strips(text_of(operator.get("/?limit=2&page=2")))) == ["c"]


def test_the_sentence_is_the_same_in_json_and_escaped_on_the_page(make_board, operator):
    board = make_board("a", "b")
    go_on(board, "a", incident("a", sentence="<b>bad</b> & worse"))
    assert items(operator)[0]["sentence"] == "<b>bad</b> & worse"
    assert "&lt;b&gt;bad&lt;/b&gt; &amp; worse" in text_of(operator.get("/"))


def test_the_menu_leads_to_all_clusters_where_there_are_several(make_board, operator):
    make_board("a", "b")
    assert ">All clusters</span>" in text_of(operator.get("/c/a/"))
    make_board("a")
    assert ">All clusters</span>" not in text_of(operator.get("/c/a/"))
