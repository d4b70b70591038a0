"""The audit trail: filters in the URL, an address for each row, exports."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.utils.html import escape

from leases.models import Edit
from tests.support.board import browser_of, member

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
CAUSE = {"field": "spec.x", "message": "odd"}
FORMULA = '=HYPERLINK("http://x")'


@pytest.fixture
def ada(board) -> User:
    return member("ada", "admin")


def write(user: User, minute: int = 0, **more) -> Edit:
    values = {
        "at": NOON + timedelta(minutes=minute),
        "user": user,
        "username": user.username,
        "cluster": "a",
        "namespace": "kube-system",
        "name": "scheduler",
        "action": "lease.edit",
        "outcome": "done",
        "changes": [{"field": "spec.holderIdentity", "from": "cp-1", "to": ""}],
        "request": {"verb": "patch", "resource_version": "7", "attempt": 2, "uid": "u"},
    }
    return Edit.objects.create(**values | more)


def text_of(browser, path: str) -> str:
    return " ".join(browser.get(path).content.decode().split())


def ids(browser, query: str) -> list[int]:
    answer = browser.get(f"/audit/?format=json&{query}")
    assert answer.status_code == 200, answer.content
    return [item["id"] for item in answer.json()["items"]]


FILTERS = [
    ("cluster=b", {"cluster": "b"}),
    ("lease=ns/x", {"namespace": "ns", "name": "x"}),
    ("user=bea", {"username": "bea"}),
    ("action=lease.delete", {"action": "lease.delete"}),
    ("outcome=unknown", {"outcome": "unknown"}),
    ("outcome=intended", {"outcome": "intended"}),
    ("batch=b1", {"batch": "b1"}),
    ("q=DRILL", {"reason": "a drill"}),
    ("q=timed+out", {"detail": "It timed out."}),
    ("q=odd", {"name": "an-odd-name"}),
    ("since=2026-11-20T12:30:00Z", {"at": NOON + timedelta(minutes=30)}),
    ("until=2026-11-20T11:59:00Z", {"at": NOON - timedelta(hours=1)}),
]


@pytest.mark.parametrize(("query", "values"), FILTERS)
def test_each_filter_of_the_url_finds_its_rows(ada, query, values):
    others = [write(ada), write(ada)]
    wanted = write(ada, **values)
    browser = browser_of(ada)
    assert ids(browser, query) == [wanted.pk]
    assert set(ids(browser, "")) == {wanted.pk, *(one.pk for one in others)}
    shown = text_of(browser, f"/audit/?{query}")
    assert f'href="/audit/{wanted.pk}/"' in shown
    assert f'href="/audit/{others[0].pk}/"' not in shown


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("lease=scheduler", "lease cannot be 'scheduler': write its namespace/name."),
        ("outcome=good", "outcome cannot be 'good': use one of done, intended"),
        ("since=soon", "since cannot be 'soon': use a time such as"),
        ("page=0", "page cannot be '0': use a whole number"),
    ],
)
def test_a_filter_that_cannot_be_used_is_a_sentence_and_keeps_what_was_typed(ada, query, sentence):
    browser = browser_of(ada)
    answer = browser.get(f"/audit/?{query}&user=bea")
    assert answer.status_code == 400
    said = sentence.replace("since", "Since")
    assert escape(said) in answer.content.decode()
    assert 'value="bea"' in answer.content.decode()
    answer = browser.get(f"/audit/?{query}&format=json")
    assert (answer.status_code, answer.json()["error"][: len(sentence)]) == (400, sentence)


def test_a_row_has_an_address_that_shows_all_of_it(ada):
    row = write(
        ada, address="203.0.113.9", as_user="ada", reason="drill <1>", batch="b 1",
        outcome="unknown", detail="The Lease is gone.", closed_at=NOON, resolved_at=NOON,
        answer={"code": 422, "reason": "Invalid", "fields": [CAUSE]},
    )  # fmt: skip
    shown = text_of(browser_of(ada), f"/audit/{row.pk}/")
    for part in (
        "203.0.113.9", "drill &lt;1&gt;", "spec.holderIdentity", "cp-1", ">empty<", "422 Invalid",
        "spec.x", "odd", "The Lease is gone.", "for the user ada", ">patch<", "?batch=b%201",
        "Resolved afterwards", "Unknown", 'href="/c/a/leases/kube-system/scheduler/"',
    ):  # fmt: skip
        assert part in shown, part


def test_a_row_of_a_cluster_that_is_no_longer_watched_links_nowhere(ada):
    row = write(ada, cluster="old")
    shown = text_of(browser_of(ada), f"/audit/{row.pk}/")
    assert "does not watch it now" in shown
    assert "/c/old/" not in shown


@pytest.mark.parametrize("number", [0, 1, 10**30])
def test_a_row_that_there_is_not_is_404(ada, number):
    answer = browser_of(ada).get(f"/audit/{number}/")
    assert answer.status_code == 404
    assert f"The audit trail has no row {number}." in answer.content.decode()


def test_a_row_with_a_name_that_no_lease_can_have_is_shown_all_the_same(ada):
    row = write(ada, name="a/b", outcome="refused")
    browser = browser_of(ada)
    assert "kube-system/a/b" in text_of(browser, "/audit/")
    assert "kube-system/a/b" in text_of(browser, f"/audit/{row.pk}/")


def test_an_open_row_says_that_it_is_open(ada):
    row = write(ada, outcome="intended")
    shown = text_of(browser_of(ada), f"/audit/{row.pk}/")
    assert "not known yet" in shown
    assert "<span>Open</span>" in shown


def lines_of(browser, answer_as: str, query: str = "") -> str:
    answer = browser.get(f"/audit/?format={answer_as}&{query}")
    assert answer["Content-Disposition"].startswith('attachment; filename="audit-')
    return b"".join(answer.streaming_content).decode()


def test_the_exports_have_the_filtered_rows_oldest_first(ada):
    first, second = write(ada, 0, reason="x"), write(ada, 5, reason="x")
    write(ada, 3, reason="y")
    browser = browser_of(ada)
    rows = [json.loads(line) for line in lines_of(browser, "ndjson", "q=x").splitlines()]
    assert [row["id"] for row in rows] == [first.pk, second.pk]
    assert rows[0]["at"] == "2026-11-20T12:00:00.000000Z"
    assert rows[0]["changes"] == [{"field": "spec.holderIdentity", "from": "cp-1", "to": ""}]
    assert (rows[0]["required_version"], rows[0]["attempts"], rows[0]["batch"]) == ("7", 2, None)
    table = list(csv.DictReader(io.StringIO(lines_of(browser, "csv", "q=x"))))
    assert [row["id"] for row in table] == [str(first.pk), str(second.pk)]
    assert table[0]["changes"] == 'spec.holderIdentity: "cp-1" -> ""'


def test_no_cell_of_the_csv_is_a_formula(ada):
    changes = [{"field": FORMULA, "from": FORMULA, "to": None}]
    write(ada, reason=FORMULA, detail="@x", changes=changes)
    (row,) = csv.DictReader(io.StringIO(lines_of(browser_of(ada), "csv")))
    assert row["reason"] == f"'{FORMULA}"
    assert not any(str(cell).startswith(("=", "+", "-", "@")) for cell in row.values())


def test_a_nul_in_a_reason_is_shown_and_found(ada):
    row = write(ada, reason="a␀b")
    browser = browser_of(ada)
    assert json.loads(lines_of(browser, "ndjson"))["reason"] == "a\0b"
    assert ids(browser, "q=a") == [row.pk]


def test_a_row_of_an_earlier_version_shows_its_fields_too(ada):
    write(ada, changes=[], request={}, before={"kind": "lock"}, after={"kind": "election"})
    shown = text_of(browser_of(ada), "/audit/")
    assert "<del>lock</del>" in shown
    assert "<ins>election</ins>" in shown


def test_who_may_read_leases_alone_does_not_read_the_trail(board):
    user = User.objects.create_user("rea")
    user.user_permissions.add(Permission.objects.get(codename="view_change"))
    row = write(user)
    for path in ("/audit/", f"/audit/{row.pk}/", "/audit/?format=csv"):
        assert browser_of(user).get(path).status_code == 403
    user.groups.add(Group.objects.get(name="operator"))
    assert browser_of(user).get("/audit/").status_code == 200


def test_older_rows_are_on_the_next_page_with_the_same_filter(ada):
    rows = [write(ada, minute, reason="x") for minute in range(3)]
    browser = browser_of(ada)
    answer = browser.get("/audit/?format=json&limit=2&q=x").json()
    assert ([one["id"] for one in answer["items"]], answer["total"]) == (
        [rows[2].pk, rows[1].pk], 3,
    )  # fmt: skip
    following = browser.get(answer["next"].partition("testserver")[2]).json()
    assert [one["id"] for one in following["items"]] == [rows[0].pk]
    assert following["next"] is None
    assert "q=x&amp;limit=2&amp;page=2" in text_of(browser, "/audit/?q=x&limit=2")
