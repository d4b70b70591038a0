"""The history page, its JSON and its exports."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from dashboard.board import running_board
from dashboard.lists import responses
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from tests.pages.conftest import HTMX, remember, text_of
from tests.support.board import KEY, member
from tests.support.values.change_rows import to_row


def test_history_pages_back_to_the_oldest_change(store, operator):
    for seconds in (10, 20, 30):
        remember(ChangeType.TAKEN_OVER, seconds_ago=seconds, holder=f"cp-{seconds}")
    first = text_of(operator.get("/c/a/history/?limit=2"))
    assert first.index("cp-10") < first.index("cp-20")
    assert "cp-30" not in first
    older = re.search(r'href="(/c/a/history/\?[^"]*before=[^"]+)"', first)[1]
    second = text_of(operator.get(older.replace("&amp;", "&")))
    assert "cp-30" in second
    assert "cp-20" not in second


def test_history_filters_in_json_as_on_the_page(store, operator):
    remember(ChangeType.EXPIRED, seconds_ago=10, holder="cp-1")
    remember(ChangeType.RELEASED, seconds_ago=20, previous_holder="cp-1")
    answer = operator.get("/c/a/history/?format=json&change=released").json()
    assert [item["change"] for item in answer["items"]] == ["released"]
    assert (answer["total"], answer["next"]) == (1, None)
    assert "Released" in text_of(operator.get("/c/a/history/?change=released", headers=HTMX))


def test_the_strip_of_history_counts_what_the_filter_leaves(store, operator):
    remember(ChangeType.EXPIRED, seconds_ago=10, holder="cp-1")
    remember(ChangeType.RELEASED, seconds_ago=20, previous_holder="cp-1")
    assert "2 changes in the last 24 h" in text_of(operator.get("/c/a/history/"))
    assert "2 changes in the last 1 h" in text_of(operator.get("/c/a/history/?range=1h"))
    released = text_of(operator.get("/c/a/history/?change=released"))
    assert "1 matching change in the last 24 h" in released


@pytest.mark.parametrize(("query", "shown"), [("change=released", False), ("kind=election", True)])
def test_rare_filters_are_folded_until_they_are_chosen(query, shown, store, operator):
    html = text_of(operator.get(f"/c/a/history/?{query}"))
    assert ('<details class="more-filters" open>' in html) is shown


@pytest.mark.parametrize(
    ("text", "found"),
    [("CP-1_", 1), ("p-1", 2), ("KUBE-SYSTEM/sched", 3), ("cp%1", 0), ("cp_1", 0), ("free", 1)],
)
def test_history_finds_parts_of_names_and_holders(text, found, store, operator):
    remember(ChangeType.EXPIRED, seconds_ago=10, holder="cp-1")
    remember(ChangeType.RELEASED, seconds_ago=20, previous_holder="CP-1_free")
    remember(ChangeType.ACQUIRED, seconds_ago=30, holder="other")
    answer = operator.get("/c/a/history/", {"q": text, "format": "json"}).json()
    assert (answer["total"], len(answer["items"])) == (found, found)


def test_several_kinds_of_change_and_whole_names_are_shown_as_chosen(store, operator):
    query = "change=expired&change=released&lease=scheduler&holder=cp-1"
    html = operator.get(f"/c/a/history/?{query}").content.decode()
    assert re.findall(r'name="change" value="(\w+)" checked', html) == ["released", "expired"]
    assert '<span id="change-label">Expired, Released</span>' in html
    assert text_of(operator.get(f"/c/a/history/?{query}", headers=HTMX)).count("hx-swap-oob") == 5
    without = re.search(r'<a class="chip on" href="([^"]+)"', html)[1].replace("&amp;", "&")
    assert "lease=" not in without
    assert "change=expired&change=released&holder=cp-1" in without


def test_a_refused_filter_keeps_all_that_was_typed_and_says_so_at_its_field(store, operator):
    query = "change=expired&kind=lock&namespace=n&lease=l&holder=h&q=x&since=never&until=03:12"
    response = operator.get(f"/c/a/history/?{query}&inferred=true&range=1h")
    html = response.content.decode()
    assert response.status_code == 400
    for name, value in (
        ("namespace", "n"), ("lease", "l"), ("holder", "h"), ("q", "x"), ("since", "never"),
        ("until", "03:12"),
    ):  # fmt: skip
        assert re.search(rf'name="{name}"[^>]* value="{value}"', html), name
    assert html.count('class="chip on"') == 2
    for chosen in ('value="1h" selected', 'value="lock" selected', 'value="true" selected'):
        assert chosen in html
    assert re.search(r'name="change" value="expired" checked', html)
    assert re.search(r'id="error-since">.*Since cannot be &#x27;never&#x27;', html)
    assert '<span class="err" id="error-until"></span>' in html


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_history_is_exported_with_the_same_filters(kind, store, operator):
    remember(ChangeType.EXPIRED, seconds_ago=10, holder="cp-1")
    remember(ChangeType.RELEASED, seconds_ago=20, previous_holder="cp-1")
    response = operator.get(f"/c/a/history/?format={kind}&change=expired")
    lines = response.getvalue().decode().splitlines()
    named = re.fullmatch(
        rf'attachment; filename="a-history-expired-\d{{8}}T\d{{6}}Z\.{kind}"',
        response["Content-Disposition"],
    )
    assert named
    if kind == "csv":
        assert lines[0].startswith("cluster,namespace,name,uid,kind,change,at,")
        assert len(lines) == 2
    else:
        assert [msgspec.json.decode(line)["change"] for line in lines] == ["expired"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["csv", "ndjson"])
async def test_an_export_is_sent_while_it_is_read(kind, board, monkeypatch):
    monkeypatch.setattr(responses, "LINES_AT_ONCE", 10)
    user = await sync_to_async(member)("olga", "operator")
    await sync_to_async(remember_many)(95)
    browser = AsyncClient()
    await browser.aforce_login(user)
    response = await browser.get(f"/c/a/history/?format={kind}")
    assert response.is_async, "Django would gather all of it first"
    parts = [part async for part in response.streaming_content]
    header = kind == "csv"
    assert len(b"".join(parts).splitlines()) == 95 + header
    assert max(len(part.splitlines()) for part in parts) <= 10 + header


def remember_many(number):
    for seconds in range(number):
        remember(ChangeType.EXPIRED, seconds_ago=seconds + 1, holder="cp-1")


@pytest.mark.parametrize("query", ["since=yesterday", "before=nonsense", "format=html&limit=0"])
def test_a_bad_history_filter_is_400(query, store, operator):
    response = operator.get(f"/c/a/history/?{query}")
    assert response.status_code == 400
    assert "This filter cannot be used" in text_of(response)


def test_a_change_that_is_not_written_yet_is_in_the_feed_once(store, operator):
    running_board().publisher.hubs["a"].recent.clear()
    remember(ChangeType.EXPIRED, holder="cp-1")
    change = Change(
        cluster="a", namespace=KEY.namespace, name=KEY.name, uid="u", kind=Kind.ELECTION,
        change=ChangeType.RELEASED, at=datetime.now(UTC), observed_at=datetime.now(UTC),
        previous_holder="cp-7",
    )  # fmt: skip
    running_board().publisher.hubs["a"].recent.append((5, change))
    assert text_of(operator.get("/c/a/")).count("<code>cp-7</code>") == 1
    to_row(change).save()
    assert text_of(operator.get("/c/a/")).count("<code>cp-7</code>") == 1
