"""A Lease whose newest write was not understood: grey, in a sentence, never healthy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from dashboard.serving.runtime import Runtime
from leases.domain.lease import Lease, ObjectName
from leases.wire.watch_decoding import Applied, Unreadable
from tests.support.board import KEY, a_lease, fill

pytestmark = pytest.mark.django_db

NEW = ObjectName("kube-system", "never-understood")
REASON = "It cannot be read: there is no text in it."
SHORT = "was not understood."
PAGE = f"/c/a/leases/{KEY.namespace}/{KEY.name}/"


@pytest.fixture
def puzzled(board: Runtime) -> Runtime:
    store = board.clusters["a"].store
    fill(store, a_lease(), a_lease(ObjectName("web", "healthy")))
    events = (Unreadable(KEY, REASON, f"uid-{KEY}", "200"), Unreadable(NEW, REASON, "u", "201"))
    assert store.follow(events, datetime.now(UTC)) is not None
    return board


def text(client: Client, url: str) -> str:
    answer = client.get(url)
    assert answer.status_code == 200
    return answer.content.decode()


def row_of(page: str, key: ObjectName) -> str:
    return page.partition(f'id="row-{key}"')[2].partition("</tr>")[0]


def test_its_row_says_so_and_shows_nothing_that_runs_on(puzzled: Runtime, operator: Client):
    page = text(operator, "/c/a/leases/")
    for key in (KEY, NEW):
        row = row_of(page, key)
        assert SHORT in row
        assert 'class="is-unknown"' in row
        assert "data-fresh" not in row
        assert "Held" not in row
        assert "no holder" not in row
    assert "Held" in row_of(page, ObjectName("web", "healthy"))


@pytest.mark.parametrize("key", [KEY, NEW])
def test_its_page_says_what_is_known(puzzled: Runtime, operator: Client, key: ObjectName):
    page = text(operator, f"/c/a/leases/{key.namespace}/{key.name}/")
    head = page.partition('id="head"')[2].partition("</section>")[0]
    assert "Leaseboard did not understand the write that it saw at" in head
    assert REASON in head
    assert "is-unknown" in head
    assert "is-held" not in head
    assert "If the holder died now" not in head
    assert ("Nothing of this Lease has been understood yet." in head) == (key == NEW)
    assert ("leaseDurationSeconds" in page) == (key == KEY), "no field is said to be not set"


def test_attention_names_it(puzzled: Runtime, operator: Client):
    page = text(operator, "/c/a/")
    line = page.partition('id="attention"')[2].partition("</ul>")[0]
    assert "<b>Not understood.</b>" in line
    assert f"{KEY.name} and {NEW.name}" in line
    assert "Nothing needs attention" not in page


def test_attention_shows_a_write_without_a_readable_name(board: Runtime, operator: Client):
    store = board.clusters["a"].store
    fill(store, a_lease())
    now = datetime.now(UTC)
    store.follow((Unreadable(None, REASON),), now - timedelta(hours=2))
    assert "whose name could not be read" not in text(operator, "/c/a/")
    store.follow((Unreadable(None, REASON),), now)
    assert "whose name could not be read" in text(operator, "/c/a/")


def test_json_says_since_when_a_lease_is_not_understood(puzzled: Runtime, operator: Client):
    items = operator.get("/c/a/leases/?format=json").json()["items"]
    since = {item["name"]: item.get("not_understood_since") for item in items}
    assert since["healthy"] is None
    assert since[KEY.name] == since[NEW.name] is not None
    assert {item["phase"] for item in items if since[item["name"]]} == {"untimed"}


def test_the_wall_shows_no_time_that_is_left(puzzled: Runtime, operator: Client):
    page = text(operator, "/c/a/wall/")
    tile = page.partition(f'data-tile="{KEY}"')[2].partition('class="for"')[0]
    assert "not understood" in tile
    assert "data-fresh" not in tile


@pytest.mark.parametrize(
    "path", ["timeline/", "holders/", "nodes/", "history/", f"leases/?q={NEW.name}"]
)
def test_every_other_page_bears_it(puzzled: Runtime, operator: Client, path: str):
    text(operator, f"/c/a/{path}")


def test_the_next_write_that_is_understood_clears_it(puzzled: Runtime, operator: Client):
    store = puzzled.clusters["a"].store
    later: list[Lease] = [a_lease(key, version=str(300 + n)) for n, key in enumerate((KEY, NEW))]
    store.follow([Applied(lease) for lease in later], datetime.now(UTC))
    assert SHORT not in text(operator, "/c/a/leases/")
    assert "did not understand" not in text(operator, PAGE)
    assert "Not understood" not in text(operator, "/c/a/")
