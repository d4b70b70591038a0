"""An API server accepts a holder of a megabyte, of any characters: pages stay small, their links
lead somewhere, and the Lease's own page shows it whole.
"""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urljoin, urlsplit

import pytest

from dashboard.lists.url_parameters import MAX_TEXT
from dashboard.live.shared_drawings import CHANGES, PARTS, render_change
from dashboard.parts.formatting import shortened
from dashboard.parts.names import (
    MAX_IDENTITY,
    MAX_SHOWN,
    holder_parameter,
    holder_view,
    is_held_by,
    part_of,
)
from leases import models
from leases.domain.change import ChangeType
from leases.domain.lease import ObjectName
from tests.support.board import a_lease, fill
from tests.support.every_url import every_page
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change

LEASES = 60  # more than a page shows at first
LONG = 20_000
WHOLE = {"lease", "lease_edit"}  # show one Lease, whole
LONGEST_LINK = 8_000  # what servers and proxies take of a request's first line


def a_holder(number: int) -> str:
    """One of the ways in which a holder is read, and long."""
    uuid = "8e1f0c8a-1111-4222-8333-123456789abc"
    name = f"{number:06}"
    return (
        name + "x" * LONG,
        f"{'h' * LONG}-{name}_{uuid}",
        f"{name}-bcdfgh-bcdfg" * (LONG // 19) + "\n",
        f"team/{name}" + "p" * LONG,
        f"{'n' * LONG}|{name}",
        f"{name}.{'d.' * (LONG // 2)}",
        f"{name}\0" + "\u202e<b>" * (LONG // 4),
        f"{name}\0short",
        " " * 50 + name + "é" * LONG,
        f"pod-{name}_{uuid}",
    )[number % 10]


@pytest.fixture
def crowd(board, admin):
    """LEASES elections with the longest names, and their take-overs in history."""
    now = datetime.now(UTC)
    store = board.clusters["a"].store
    fill(board.clusters["b"].store)
    keys = [ObjectName("kube-system", f"lease-{number:03}") for number in range(LEASES)]
    keys[0] = ObjectName("kube-system", "scheduler")
    fill(store, *(a_lease(key, holder=a_holder(n), now=now) for n, key in enumerate(keys)))
    changes = [
        a_change(
            number,
            name=key.name,
            at=now - timedelta(minutes=LEASES - number),
            holder=a_holder(number),
            previous_holder=a_holder(number + 1),
            change=ChangeType.TAKEN_OVER if number % 2 else ChangeType.EXPIRED,
        )
        for number, key in enumerate(keys)
    ]
    models.ChangeRecord.objects.bulk_create(map(to_row, changes))
    for hub in board.publisher.hubs.values():
        hub.activity.read(hub.store.cluster, now)
    board.publisher.fill("a", changes)
    return board


QUERIES = {
    "leases": ("limit=200", "limit=200&at={past}"),
    "history": ("limit=200", "limit=200&view=sentences"),
    "timeline": ("limit=200", "limit=200&view=table", "limit=200&at={past}"),
    "holders": ("limit=200", "limit=200&group=identity", "limit=200&group=identity&holds=past"),
}
LISTS = [page for page in every_page() if page.name not in WHOLE]


def test_pages_of_long_holders_are_small_and_their_links_lead_somewhere(crowd, admin, subtests):
    past = f"{datetime.now(UTC) - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"
    for page in LISTS:
        for query in QUERIES.get(page.name, ("",)):
            with subtests.test(page=page.name, query=query):
                check_page(admin, page.path, query.format(past=past))


def check_page(admin, path: str, query: str) -> None:
    answer = admin.get(f"{path}?{query}")
    text = answer.content.decode()
    assert answer.status_code in (200, 302, 404, 405, 409, 410), text[:2000]
    assert len(answer.content) < 8_000 * LEASES, f"{len(text):,}"
    assert not re.search("[xhpné]{600}", text)
    check_links(admin, path, text)


def check_links(admin, path: str, text: str) -> None:
    """Each kind of link once for each holder's look: ten Leases show every look."""
    links = {html.unescape(link) for link in re.findall(r'(?:href|hx-get)="([^"]+)"', text)}
    for link in sorted(links):
        assert len(link) < LONGEST_LINK, link[:200]
    asked = [link for link in links if "holder=" in link or "q=" in link or "before=" in link]
    for link in sorted(asked)[:12]:
        target = urljoin(path, link)
        assert not urlsplit(target).netloc
        assert admin.get(target).status_code == 200, target[:300]


@pytest.mark.parametrize("number", range(10))
def test_the_page_of_a_lease_shows_its_holder_whole(board, admin, number):
    holder = a_holder(number)
    fill(board.clusters["a"].store, a_lease(holder=holder))
    answer = admin.get("/c/a/leases/kube-system/scheduler/")
    assert answer.status_code == 200
    assert holder in html.unescape(answer.content.decode())
    assert len(answer.content) < 8 * len(holder.encode()) + 100_000


def test_a_frame_of_the_live_socket_is_small(crowd):
    hub, now = crowd.publisher.hubs["a"], datetime.now(UTC)
    for lease in hub.store.snapshot()[:10]:
        for draw in PARTS.values():
            assert len(draw("a", lease, now, hub.activity)) < 8_000
    for number in range(10):
        change = a_change(number, holder=a_holder(number), previous_holder=a_holder(number + 1))
        for form in CHANGES:
            assert len(render_change(change, form, now)) < 8_000


def test_metrics_name_a_long_holder_by_its_ends(crowd, admin):
    text = admin.get("/metrics").content.decode()
    assert 'leaseboard_election_holder_info{cluster="a"' in text
    assert len(text) < 2_000 * LEASES


def test_a_long_holder_is_shown_by_both_ends_and_its_length():
    view = holder_view("a" * 50_000 + "b" * 50_000)
    assert re.fullmatch(r"a{79,80}…b{79,80}", view.host)
    assert view.id == " (100,000 characters)"
    assert view.identity == view.host + view.id
    assert re.fullmatch(r"a{20,}…b{6}", view.short)
    assert holder_view("x" * MAX_IDENTITY).host == "x" * MAX_IDENTITY
    assert len(holder_view("x" * (MAX_IDENTITY + 1)).host) < MAX_SHOWN + 30
    assert holder_view("a\0b").identity == "a␀b"
    for limit in range(1, 9):
        assert len(shortened("abcdefgh", limit)) == min(limit, 8)


def test_long_holders_are_not_kept_in_memory_for_being_shown():
    from dashboard.parts.holdings import _host_of, host_of
    from dashboard.parts.names import _in_parts

    kept = _host_of.cache_info().currsize, _in_parts.cache_info().currsize
    for number in range(20):
        holder = f"{number}{'x' * LONG}"
        assert host_of(holder) == holder
        assert holder_view(holder) is not None
    assert (_host_of.cache_info().currsize, _in_parts.cache_info().currsize) == kept


@pytest.mark.parametrize("number", range(10))
def test_a_holder_is_found_again_by_what_its_link_says(number):
    holder = a_holder(number)
    said = holder_parameter(holder)
    assert len(said) <= MAX_TEXT
    assert is_held_by(said)(holder)
    assert not is_held_by(said)(holder + "!")
    assert not is_held_by(said)(a_holder(number + 10))
    assert part_of(holder) in holder


def test_a_common_holder_is_named_by_itself_in_links():
    assert holder_parameter("cp-1_8e1f") == "cp-1_8e1f"
    assert is_held_by("cp-1")("cp-1_8e1f")
    assert is_held_by("cp-1_8e1f")("cp-1_8e1f")
    assert not is_held_by("cp")("cp-1_8e1f")
    assert not is_held_by("sha256:0")("cp-1_8e1f")
