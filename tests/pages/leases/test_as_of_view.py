"""The Leases page as of an instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dashboard.pages import leases
from leases.domain.change import ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.models import WatchSpan
from tests.support.board import a_lease, fill
from tests.support.values.change_rows import to_row
from tests.support.values.changes import T0, a_change

SCHEDULER = ObjectName("kube-system", "scheduler")
WORKER = ObjectName("jobs", "worker")
GONE = ObjectName("jobs", "gone")


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def asked(seconds: float) -> str:
    return f"/c/a/leases/?at={at(seconds):%Y-%m-%dT%H:%M:%S.%fZ}"


def remember(key, seconds, word, holder, **more):
    change = ChangeType(word)
    names = {"holder": holder, "previous_holder": None}
    if change in (ChangeType.RELEASED, ChangeType.DELETED):
        names = {"holder": None, "previous_holder": holder}
    kept = a_change(
        seconds, namespace=key.namespace, name=key.name, change=change, **(names | more)
    )
    to_row(kept).save()


@pytest.fixture
def page(board, operator):
    """An operator's browser on cluster a, whose history began at T0; two Leases live on."""
    store = board.clusters["a"].store
    fill(store, a_lease(SCHEDULER, holder="cp-9"), a_lease(WORKER, holder=None))
    store.connection = Connection(state=ConnectionState.LIVE, since=datetime.now(UTC))
    WatchSpan.objects.create(cluster="a", process="p", since=at(0), until=at(500))
    remember(SCHEDULER, 0, "created", "cp-1")
    remember(SCHEDULER, 100, "expired", "cp-1")
    remember(SCHEDULER, 110, "taken_over", "cp-2", transitions=7)
    remember(WORKER, 20, "created", "w", kind=Kind.LOCK)
    remember(WORKER, 60, "released", "w", kind=Kind.LOCK)
    remember(GONE, 10, "created", "g")
    remember(GONE, 200, "deleted", "g")
    return operator


def items(page, seconds: float, query: str = "") -> list[tuple[str, str, str | None]]:
    answer = page.get(f"{asked(seconds)}&format=json{query}").json()
    assert answer["total"] == len(answer["items"])
    return [(item["name"], item["phase"], item["holder"]) for item in answer["items"]]


def test_the_columns_of_namespaces_and_names_have_heads_of_their_own(page):
    html = page.get(asked(105)).content.decode()
    assert '<span class="lease-head"><span>Namespace</span><span>Lease</span></span>' in html


def test_the_state_of_every_instant(page):
    assert items(page, -1) == []
    assert items(page, 0) == [("scheduler", "held", "cp-1")]
    assert items(page, 59) == [
        ("gone", "held", "g"),
        ("worker", "held", "w"),
        ("scheduler", "held", "cp-1"),
    ]
    assert items(page, 105) == [
        ("scheduler", "expired", "cp-1"),
        ("worker", "vacant", None),
        ("gone", "held", "g"),
    ]
    assert items(page, 200) == [("worker", "vacant", None), ("scheduler", "held", "cp-2")]


def test_an_item_has_the_contracts_fields_and_since_when(page):
    live = page.get("/c/a/leases/?format=json").json()["items"][0]
    (then,) = page.get(f"{asked(150)}&q=scheduler&format=json").json()["items"]
    assert set(live) <= set(then)
    assert (then["since"], then["transitions"]) == ("2026-11-20T12:01:50.123456Z", 7)
    assert then["as_of"] == "2026-11-20T12:02:30.123456Z"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("&kind=heartbeat", []),
        ("&kind=election&q=cp", ["scheduler"]),
        ("&phase=vacant", ["worker"]),
        ("&namespace=jobs&sort=-name", ["worker", "gone"]),
        ("&holder=cp-1", ["scheduler"]),
        ("&q=GO", ["gone"]),
        ("&sort=held", ["gone", "worker", "scheduler"]),
    ],
)
def test_filters_and_orders(page, query, names):
    assert [name for name, _, _ in items(page, 105, query)] == names


def test_pages_go_on(page):
    first = page.get(f"{asked(105)}&format=json&limit=2").json()
    second = page.get(first["next"]).json()
    assert first["total"] == second["total"] == 3
    assert [item["name"] for item in (*first["items"], *second["items"])] == [
        "scheduler",
        "worker",
        "gone",
    ]
    assert second["next"] is None


def test_the_page_says_that_it_is_of_the_past(page):
    html = page.get(asked(105)).content.decode()
    assert "As of 20 Nov 2026 12:01:45.123 UTC" in html
    assert "Nobody was watching" not in html
    assert "cp-1" in html
    assert "cp-9" not in html


def test_a_time_in_which_nobody_watched_is_said(page):
    assert "Nobody was watching" in page.get(asked(700)).content.decode()
    before = page.get(asked(-60)).content.decode()
    assert "Nothing is known of" in before
    assert "No Lease like these" not in before


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("at=yesterday", "at cannot be"),
        ("at=2999-01-01T00:00:00Z", "at lies ahead"),
        ("at=2026-11-20T12:00:00Z&labels=a%3Db", "labels cannot be asked of the past"),
    ],
)
def test_impossible_queries_are_refused_in_a_sentence(page, query, words):
    answer = page.get(f"/c/a/leases/?{query}&format=json")
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def test_too_many_leases_are_shown_by_name_a_page_at_a_time(page, monkeypatch):
    monkeypatch.setattr(leases, "MAX_MATCHES", 2)
    answer = page.get(f"{asked(105)}&format=json&limit=2").json()
    assert [item["name"] for item in answer["items"]] == ["gone", "worker"]
    assert answer["total"] == 3
    refused = page.get(f"{asked(105)}&format=json&phase=held")
    assert "too many to search" in refused.json()["error"]
    assert "In the order of names" in page.get(asked(105)).content.decode()
