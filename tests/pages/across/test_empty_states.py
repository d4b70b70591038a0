"""Nothing listed, nothing held, nothing known, all filtered out: neutral words, never good news."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape

import msgspec
import pytest

from leases.domain.lease import Lease, ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from tests.support.board import a_lease, fill

GOOD = re.compile(r"All in time|Nothing needs attention|Every heartbeat is in time")
PLACES = ("", "wall/", "nodes/")
NO_LEASES = ("", "leases/", "timeline/", "holders/", "nodes/", "wall/")
OF_THE_PAST = ("history/", "incidents/")
EVERYWHERE = (*NO_LEASES, *OF_THE_PAST, "incidents/near-misses/")


@pytest.fixture
def cluster(board):
    return board.clusters["a"]


def connect(cluster, state: ConnectionState = ConnectionState.LIVE, detail: str = "") -> None:
    now = datetime.now(UTC)
    cluster.store.connection = Connection(state=state, since=now, detail=detail)


def listed(cluster, *leases: Lease) -> None:
    fill(cluster.store, *leases)
    connect(cluster)


def heartbeat(name: str = "node-1") -> Lease:
    key = ObjectName("kube-node-lease", name)
    lease = a_lease(key, holder=name)
    spec = msgspec.structs.replace(lease.spec, acquire_time=None, lease_transitions=None)
    return Lease(lease.metadata, spec)


def free(name: str) -> Lease:
    return a_lease(ObjectName("apps", name), holder=None)


def page_of(browser, path: str) -> str:
    answer = browser.get(f"/c/a/{path}")
    assert answer.status_code == 200, path
    text = answer.content.decode()
    return text[text.index("<main") :]


def words(text: str) -> str:
    text = re.sub(r"<(template|script).*?</\1>", " ", text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text)))


def good_news(text: str) -> list[str]:
    """Empty places in the colour of what is held, and words of comfort."""
    return re.findall(r'class="(?:empty|w-fine)[^"]* is-held', text) + GOOD.findall(words(text))


@pytest.mark.parametrize("path", EVERYWHERE)
def test_a_cluster_without_leases_says_only_that(path, cluster, operator):
    listed(cluster)
    text = page_of(operator, path)
    assert not good_news(text)
    if path in NO_LEASES:
        expected = "Nobody holds anything" if path == "holders/" else "There are no"
        assert expected in words(text)
    assert "Clear all filters" not in text
    assert not re.search(r'class="kpi[^"]*is-held', text)
    if path == "wall/":
        assert 'class="w-counts unwatched"' in text  # grey: see util.css
    if path == "nodes/":
        assert 'class="facts numbers unwatched"' in text
    if path == "":
        assert "No heartbeats are known." in text


@pytest.mark.parametrize("path", EVERYWHERE)
def test_a_cluster_that_was_never_read_is_not_called_well(path, cluster, operator):
    text = page_of(operator, path)
    assert not good_news(text)
    assert "There are no" not in words(text)
    assert not re.search(r'class="kpi[^"]*is-(held|expired|late|vacant)', text)


@pytest.mark.parametrize("path", PLACES)
def test_a_cluster_that_refuses_us_says_what_is_missing(path, cluster, operator):
    connect(cluster, ConnectionState.REFUSED, "Leaseboard may not list Leases: grant list.")
    text = page_of(operator, path)
    assert not good_news(text)
    assert "Leaseboard may not list Leases: grant list." in words(text)


@pytest.mark.parametrize("path", PLACES)
def test_leases_that_nobody_holds_are_no_good_news(path, cluster, operator):
    """An election is allowed to be free for a moment; that is not yet trouble, and not well."""
    listed(cluster, free("one"), free("two"))
    text = page_of(operator, path)
    assert not good_news(text)


def test_a_cluster_of_heartbeats_alone_says_that_all_are_in_time(cluster, operator):
    listed(cluster, heartbeat("node-1"), heartbeat("node-2"))
    overview = words(page_of(operator, ""))
    assert "Nothing needs attention 2 heartbeats in time. 2 Leases are watched." in overview
    assert "election" not in re.findall(r"Nothing needs attention(.*?)watched", overview)[0]
    wall = words(page_of(operator, "wall/"))
    assert "No Lease in a looks like an election." in wall
    assert "All in time" in wall
    assert "Every heartbeat is in time" in words(page_of(operator, "nodes/"))


def test_only_elections_say_nothing_of_heartbeats(cluster, operator):
    listed(cluster, a_lease())
    assert "1 election held. 1 Lease is watched." in words(page_of(operator, ""))
    wall = words(page_of(operator, "wall/"))
    assert "No other Leases" in wall
    assert "All in time" not in wall
    nodes = page_of(operator, "nodes/")
    assert not good_news(nodes)
    assert "There are no heartbeats" in words(nodes)


def test_elections_that_are_not_held_are_not_counted_as_held(cluster, operator):
    listed(cluster, a_lease(), free("one"))
    assert "1 election held. 2 Leases are watched." in words(page_of(operator, ""))


def test_a_wall_whose_filter_leaves_nothing_says_so(cluster, operator):
    listed(cluster, a_lease(), heartbeat())
    text = words(page_of(operator, "wall/?q=nothing-is-called-so"))
    assert "No Lease matches this wall's filter." in text


@pytest.mark.parametrize("path", ["leases/", "timeline/", "holders/", *OF_THE_PAST])
def test_filters_that_leave_nothing_say_what_was_asked(path, cluster, operator):
    listed(cluster, a_lease(), heartbeat())
    name = "lease" if path in OF_THE_PAST else "q"
    text = page_of(operator, f"{path}?{name}=nothing-is-called-so")
    assert not good_news(text)
    assert "nothing-is-called-so" in text
    assert "Clear all filters" in text


def test_forecasts_ignore_leases_whose_pods_die_with_the_node(cluster, operator):
    listed(cluster, heartbeat("node-1"), a_lease(holder="node-1"), a_lease(ObjectName("x", "y")))
    text = words(page_of(operator, "holders/"))
    rows = re.split(r"(?=node-1)", text)
    assert any("1 Lease , 50 % by name; what its Pods hold is not known" in row for row in rows)
    assert "by the node's name; Pods are not read" in text
    assert text.count("what its Pods hold is not known") == 1  # cp-1 is no node
