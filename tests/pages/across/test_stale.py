"""A page of a cluster that is not live carries the moment of what it shows; no script is needed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from dashboard.parts.formatting import when
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import Lease, ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.models import WatchSpan
from leases.wire.microtime import format_microtime
from leases.wire.watch_decoding import Listed
from tests.support.board import KEY, a_lease
from tests.support.values.change_rows import to_row
from tests.support.values.tracked_leases import tracked

NODE = ObjectName("kube-node-lease", "node-1")
PATHS = {
    "overview": "",
    "leases": "leases/",
    "lease": f"leases/{KEY}/",
    "edit": f"leases/{KEY}/edit/",
    "holders": "holders/",
    "nodes": "nodes/",
    "timeline": "timeline/",
    "history": "history/",
    "incidents": "incidents/",
    "near misses": "incidents/near-misses/",
}


def known_until(board, ago: timedelta, state: ConnectionState = ConnectionState.STALE) -> datetime:
    """Cluster a as it was listed `ago`, an instant after each renewal; nothing was heard since."""
    heard = datetime.now(UTC).replace(microsecond=0) - ago
    store = board.clusters["a"].store
    leases = (a_lease(now=heard - timedelta(seconds=2)), a_heartbeat(heard - timedelta(seconds=3)))
    store.replace(Listed(leases, "100"), heard)
    store.connection = Connection(state=state, since=heard, heard_at=heard)
    return heard


def a_heartbeat(renewed: datetime) -> Lease:
    beat = a_lease(NODE, holder=NODE.name, now=renewed)
    assert beat.spec.renew_time == renewed
    return beat


@pytest.fixture
def heard(board) -> datetime:
    return known_until(board, timedelta(minutes=20))


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_every_page_says_since_when_it_is_not_live(path, heard, admin):
    text = admin.get(f"/c/a/{path}").content.decode()
    assert 'data-live="stale"' in text
    assert re.search(rf'data-as-of="{heard.timestamp():.1f}', text)
    assert f"Stale since {said(heard)}" in words(text)
    assert f"This page shows what was known at {said(heard)}." in words(text)
    assert "As of " not in pill(text)


@pytest.mark.parametrize("path", ["", "leases/", f"leases/{KEY}/", f"leases/{KEY}/edit/"])
def test_ages_stand_still_where_the_cluster_was_heard_last(path, heard, admin):
    text = words(admin.get(f"/c/a/{path}").content.decode())
    assert "2.0 s ago" in text
    assert "20 m" not in text


def test_json_says_when_it_was_read_and_whether_it_is_live(board, operator):
    answer = operator.get("/c/a/leases/?format=json").json()
    assert (answer["as_of"], answer["connection"]) == (None, "connecting")
    heard = known_until(board, timedelta(minutes=20))
    answer = operator.get("/c/a/leases/?format=json").json()
    assert (answer["as_of"], answer["connection"]) == (format_microtime(heard), "stale")
    assert answer["as_of"] < answer["now"]
    store = board.clusters["a"].store
    store.connection = msgspec.structs.replace(store.connection, state=ConnectionState.LIVE)
    answer = operator.get("/c/a/leases/?format=json").json()
    assert list(answer) == ["items", "total", "next", "now"]


@pytest.mark.parametrize(
    "path",
    [
        "leases/", "holders/", "timeline/", "history/", "history/stretch/", "incidents/",
        "incidents/near-misses/", "reliability/", "search/?q=cp",
    ],
)  # fmt: skip
def test_json_of_every_list_says_when_it_may_be_outdated(path, heard, board, operator):
    url = f"/c/a/{path}{'&' if '?' in path else '?'}format=json"
    answer = operator.get(url).json()
    assert (answer["as_of"], answer["connection"]) == (format_microtime(heard), "stale")
    store = board.clusters["a"].store
    store.connection = msgspec.structs.replace(store.connection, state=ConnectionState.LIVE)
    assert list(operator.get(url).json()) == ["items", "total", "next", "now"]


def test_json_of_what_an_earlier_run_knew_says_when(board, operator):
    heard = datetime.now(UTC) - timedelta(minutes=20)
    board.clusters["a"].store.restore((tracked(now=heard),), heard)
    answer = operator.get("/c/a/leases/?format=json").json()
    assert len(answer["items"]) == 1
    assert (answer["as_of"], answer["connection"]) == (format_microtime(heard), "connecting")


def test_a_lease_page_carries_the_moment_of_its_fields(heard, operator):
    text = words(operator.get(f"/c/a/leases/{KEY}/").content.decode())
    assert text.count(f"as of {heard:%H:%M:%S}") == 2
    assert "others may take it in 13 s" in text


def test_the_present_of_an_edit_form_says_when_it_was_read(heard, admin):
    text = words(admin.get(f"/c/a/leases/{KEY}/edit/").content.decode())
    assert f"as read at {heard:%H:%M:%S}" in text


def test_the_wall_is_not_live_from_its_first_paint(heard, admin):
    text = admin.get("/c/a/wall/").content.decode()
    assert '<body class="wall" data-live="stale"' in text
    assert re.search(r"NOT LIVE for 00:20:\d\d", words(text))
    assert f"last data {said(heard)} UTC" in words(text)


@pytest.mark.parametrize("path", ["/", "/timeline/", "/history/", "/incidents/"])
def test_a_page_over_clusters_says_how_many_of_them_are_live(path, heard, board, operator):
    board.clusters["b"].store.connection = Connection(
        state=ConnectionState.LIVE, since=heard, heard_at=heard
    )
    text = operator.get(path).content.decode()
    assert '<span class="live is-expired"' in text
    assert pill(text).strip() == "1 of 2 live"
    board.clusters["a"].store.connection = Connection(state=ConnectionState.PAUSED, since=heard)
    assert '<span class="live is-late"' in operator.get(path).content.decode()
    if path != "/":
        of_b = operator.get(f"{path}?cluster=b").content.decode()
        assert pill(of_b).strip().startswith("As of "), "it shows nothing of the other"


def test_a_wall_of_several_says_how_many_of_them_are_live(heard, board, operator):
    board.clusters["b"].store.connection = Connection(
        state=ConnectionState.LIVE, since=heard, heard_at=heard
    )
    text = operator.get("/wall/fleet/").content.decode()
    assert re.search(r'class="w-live is-expired" data-wall-live>.*\s*<span>1 of 2 live<', text)


def test_ages_of_heartbeats_are_those_of_the_moment(heard, operator):
    text = operator.get("/c/a/").content.decode()
    ages = re.search(r'id="ages">.*?aria-label="(.*?)"', text, re.DOTALL)
    assert ages is not None
    assert "expired" not in ages[1] or "0 expired" in ages[1]


def test_knowledge_of_another_day_is_dated(board, operator):
    heard = known_until(board, timedelta(days=3))
    day = f"{heard.day} {heard:%b %Y} {heard:%H:%M:%S}"
    text = words(operator.get("/c/a/leases/").content.decode())
    assert f"Stale since {day}" in text


def test_a_refused_cluster_shows_the_moment_it_was_read_not_that_of_the_refusal(board, operator):
    heard = known_until(board, timedelta(minutes=20), ConnectionState.REFUSED)
    store = board.clusters["a"].store
    refused = heard + timedelta(minutes=19)
    store.connection = Connection(
        state=ConnectionState.REFUSED, since=refused, heard_at=heard, detail="It refuses us."
    )
    text = words(operator.get(f"/c/a/leases/{KEY}/").content.decode())
    assert f"No access since {said(refused)}." in text
    assert f"what was known at {said(heard)}." in text
    assert "2.0 s ago" in text


def test_a_cluster_that_was_never_read_has_no_moment(board, operator):
    """Nothing is known of it: no age, no figure, no moment."""
    text = operator.get("/c/a/").content.decode()
    assert 'data-live="connecting"' in text
    assert re.search(r"<span data-stale-as-of hidden>", text)
    assert "Connecting&hellip;" in pill(text)


def test_a_term_is_measured_up_to_what_is_known(heard, operator):
    """Nobody saw whether it went on: the figures of the past end where the watch did."""
    began = heard - timedelta(minutes=10)
    shown = Change(
        cluster="a", namespace=KEY.namespace, name=KEY.name, uid="u", kind=Kind.ELECTION,
        change=ChangeType.CREATED, at=began, observed_at=began, holder="cp-1",
        resource_version="1",
    )  # fmt: skip
    to_row(shown).save()
    WatchSpan.objects.create(cluster="a", process="p", since=began, until=heard)
    text = words(operator.get(f"/c/a/leases/{KEY}/?range=1h").content.decode())
    assert re.search(r"Longest ?10 m 0 s", text)
    assert f"{when(heard, datetime.now(UTC))} and on" in text


def pill(text: str) -> str:
    found = re.search(r"<span class=\"live.*?</span>\s*</span>", text, re.DOTALL)
    assert found is not None
    return words(found[0])


def said(moment: datetime) -> str:
    return when(moment, datetime.now(UTC))


def words(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text))
