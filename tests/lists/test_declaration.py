"""What the declaration of a list decides: its parameters, its refusals and its answers."""

from __future__ import annotations

import csv
import html
import json
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.http import QueryDict
from django.urls import get_resolver, reverse

from dashboard.lists.declaration import List
from dashboard.lists.url_parameters import BadFilter
from dashboard.pages.audit import AuditList
from leases.models import Edit
from tests.support.values.edge_values import VALUES

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
# Each page that shows one of these draws it from its declaration.
NAMES = {
    "audit", "clusters", "history", "history_all", "holders", "home", "incidents", "incidents_all",
    "leases", "near_misses", "saved_views", "search", "search_all", "security_log", "stretch",
    "timeline_all",
}  # fmt: skip


def declared() -> dict[str, type[List]]:
    assert get_resolver().url_patterns  # all pages are loaded
    return List.declared


def test_the_lists_are_declared_under_the_names_of_their_urls():
    assert set(declared()) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_state_survives_its_own_query_string(name, board):
    reads = declared()[name].reads
    for parameter in reads.PARAMETERS.values():
        for value in VALUES:
            query = QueryDict(f"{parameter.name}={value}")
            try:
                state = reads.read(query, NOW)
            except BadFilter:
                continue
            assert reads.read(QueryDict(state.query()), NOW) == state, (parameter.name, value)


def test_the_end_of_a_stretch_is_read_first_and_the_size_of_a_page_last():
    day = datetime(2026, 11, 20, tzinfo=UTC)
    state = AuditList.read(QueryDict("since=03:12&until=2026-11-20T12:00"), NOW)
    assert state.since == day.replace(hour=3, minute=12)
    with pytest.raises(BadFilter, match="page cannot be 'y'"):
        AuditList.read(QueryDict("limit=x&page=y"), NOW)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [*((name, "limit=x") for name in sorted(NAMES)), ("audit", "limit=0"), ("audit", "limit=1001")],
)
def test_each_list_refuses_a_size_in_one_sentence(name, wrong, board, admin):
    of_board = ("audit", "clusters", "home", "saved_views", "security_log")
    of_cluster = not (name in of_board or name.endswith("_all"))
    path = reverse(name, args=["a"] if of_cluster else [])
    refused = admin.get(f"{path}?{wrong}&format=json")
    said = f"limit cannot be '{wrong[6:]}': use a whole number from 1 to 1,000."
    assert (refused.status_code, refused.json()) == (400, {"error": said})
    page = admin.get(f"{path}?{wrong}")
    assert page.status_code == 400
    assert "use a whole number from 1 to 1,000" in page.content.decode()


@pytest.mark.parametrize(
    ("path", "said", "to_people"),
    [
        ("timeline/?at=99:99", "at cannot be '99:99'", "As of cannot be '99:99'"),
        ("leases/?at=99:99", "at cannot be '99:99'", "As of cannot be '99:99'"),
        ("history/?since=99:99", "since cannot be '99:99'", "Since cannot be '99:99'"),
        ("incidents/?to=99:99", "to cannot be '99:99'", "To cannot be '99:99'"),
        ("reliability/?date=x", "date cannot be 'x'", "The day cannot be 'x'"),
        ("history/stretch/?from=2026-11-20", "from and to belong", "From and To belong"),
        (
            "incidents/?from=2026-11-20&to=2026-11-19",
            "to must be later than from.",
            "To must be later than From.",
        ),
    ],
)
def test_a_refused_time_has_the_name_of_its_field_on_a_page(path, said, to_people, board, admin):
    page = html.unescape(admin.get(f"/c/a/{path}").content.decode())
    assert to_people in page
    assert said not in page
    error = admin.get(f"/c/a/{path}&format=json").json()["error"]
    assert error.startswith(said)


def test_json_csv_and_ndjson_of_a_list_say_the_same(board, admin):
    for number in (1, 2):
        Edit.objects.create(
            at=NOW.replace(minute=number), user=User.objects.get(username="ada"), username="ada",
            cluster="a", namespace="n", name=f"=x{number}", action="lease.edit", outcome="done",
        )  # fmt: skip
    files = {
        one: b"".join(admin.get(f"/audit/?format={one}").streaming_content).decode()
        for one in declared()["audit"].files
    }
    items = admin.get("/audit/?format=json").json()["items"]
    assert [json.loads(line) for line in files["ndjson"].splitlines()] == items[::-1]
    rows = list(csv.DictReader(files["csv"].splitlines()))
    assert [row["id"] for row in rows] == [str(item["id"]) for item in items[::-1]]
    assert rows[0]["name"] == "'=x1"  # no formula
    assert tuple(rows[0]) == tuple(items[0]) == declared()["audit"].fields
