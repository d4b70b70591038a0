"""What happens between the drawing of a page and the opening of its socket reaches the page."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from dashboard.live.page_reader import PageReader
from dashboard.live.shared_drawings import Drawings
from leases.domain.change import ChangeType
from leases.domain.lease import ObjectName
from leases.wire.watch_decoding import Applied, Deleted
from tests.pages.conftest import remember, text_of
from tests.support.board import KEY, a_lease
from tests.support.drawn_page import fetched, show_of
from tests.support.values.incidents import open_incident

NEW = ObjectName("apps", "new")


@pytest.fixture
def gap(store, board, operator):
    """Draw a page, let `happens` happen, then open its socket: the HTML and the first frame."""
    hub = board.publisher.hubs["a"]

    def first_frame(path: str, happens):
        page, _, query = path.partition("?")
        html = text_of(operator.get(f"/c/a/{page}?{query}"))
        happens(hub)
        reader = PageReader(hub, Drawings())
        hub.pages.add(reader)
        reader.show(show_of(html, f"?{query}" if query else ""))
        frame = reader.frame(datetime.now(UTC))
        later = reader.frame(datetime.now(UTC) + timedelta(seconds=2))
        assert {"list", "refetch", "feed", "incidents"}.isdisjoint(
            {name for name, value in later.items() if value}
        ), "told once"
        return html, frame

    return first_frame


def create(hub, key: ObjectName = NEW, version: str = "200", **spec) -> None:
    lease = a_lease(key, version=version)
    lease = msgspec.structs.replace(lease, spec=msgspec.structs.replace(lease.spec, **spec))
    hub.publish(hub.store.follow((Applied(lease),), datetime.now(UTC)))


def delete(hub) -> None:
    gone = a_lease(ObjectName("apps", "other"), version="201")
    hub.publish(hub.store.follow((Deleted(gone),), datetime.now(UTC)))


def release(hub) -> None:
    create(hub, KEY, "201", holder_identity="")


def take(hub) -> None:
    create(hub, KEY, "201", holder_identity="cp-9")


def an_incident(hub) -> None:
    hub.incidents_moved([open_incident(KEY)])


@pytest.mark.parametrize(("query", "happens", "told"), [
    ("", create, True),
    ("q=new", create, True),
    ("q=nothing", create, False),
    ("namespace=apps", delete, True),
    ("phase=vacant", release, True),
    ("phase=held", release, True),
    ("holder=cp-9", take, True),
    ("holder=cp-8", take, False),
    ("", take, False),
    ("", lambda _: None, False),
    ("", an_incident, False),
])  # fmt: skip
def test_a_list_learns_that_it_may_differ(gap, query, happens, told):
    _, frame = gap(f"leases/?{query}", happens)
    assert frame.get("list", False) is told
    assert "refetch" not in frame


@pytest.mark.parametrize(("path", "happens", "shown"), [
    ("", create, "feed"),
    ("holders/", create, "holders"),
    ("timeline/", create, "numbers"),
    ("timeline/", an_incident, "board"),
    ("history/", create, "numbers"),
    ("history/?q=new", create, "numbers"),
    ("incidents/", an_incident, "board"),
    ("wall/", create, "feed"),
    ("wall/", an_incident, "lanes"),
    ("wall/", take, "feed"),
    (f"leases/{KEY}/", take, "feed"),
    (f"leases/{KEY}/", take, "yaml-panel"),
    (f"leases/{KEY}/", an_incident, "incidents"),
])  # fmt: skip
def test_a_page_is_told_or_fetches(gap, path, happens, shown):
    html, frame = gap(path, happens)
    assert frame.get(shown) or shown in fetched(html, frame), frame.keys()
    assert "refetch" not in frame


def test_a_history_with_lines_gets_more_of_them(gap):
    remember(ChangeType.ACQUIRED)
    _, frame = gap("history/", lambda hub: [create(hub), an_incident(hub)])
    assert len(frame["feed"]) == 1
    assert frame["incidents"]


@pytest.mark.parametrize(("path", "shown"), [("", "kpis"), ("nodes/", "node-counts")])
def test_parts_that_pages_share_are_drawn_once_the_socket_is_open(gap, board, path, shown):
    hub = board.publisher.hubs["a"]

    async def regions() -> dict:
        hub.tick(datetime.now(UTC))
        while hub.shared._drawing:
            await asyncio.sleep(0.01)
        (reader,) = hub.pages
        return reader.frame(datetime.now(UTC))["regions"]

    gap(path, lambda hub: create(hub, ObjectName("kube-node-lease", "n-1"), holder_identity="n-1"))
    assert ">1<" in asyncio.run(regions())[shown]


def test_a_drawing_that_nobody_remembers_is_fetched_again(gap):
    def much(hub):
        for version in range(300):
            create(hub, version=str(version + 200), holder_identity=f"cp-{version}")

    _, frame = gap("leases/?q=new", much)
    assert frame["list"]
    assert frame["refetch"]
