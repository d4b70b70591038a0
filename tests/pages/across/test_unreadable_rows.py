"""A row that cannot be read takes no page and no export away: it is shown, with its number.

Such rows are of earlier versions, which stored what cannot be encoded, or of later ones.
"""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection

from leases import models
from tests.support.board import KEY, a_lease, fill
from tests.support.every_url import consume
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change
from tests.support.values.incident_rows import incident_with, store

NOW = datetime.now(UTC).replace(microsecond=0)
HALF = "\ud800"


def poisoned(**columns) -> models.Edit:
    ada = User.objects.get(username="ada")
    row = {
        "at": NOW - timedelta(minutes=1), "user": ada, "username": "ada", "cluster": "a",
        "namespace": KEY.namespace, "name": KEY.name, "action": "lease.yaml", "outcome": "done",
        "request": {"verb": "patch", "resource_version": "1", "attempt": 1, "uid": "u"},
    }  # fmt: skip
    return models.Edit.objects.create(**row | columns)


@pytest.fixture
def browser(board, admin):
    fill(board.clusters["a"].store, a_lease())
    return admin


@pytest.mark.parametrize(
    "columns",
    [
        {"changes": [{"field": "metadata.annotations[x]", "from": None, "to": HALF}]},
        {"changes": [{"field": HALF, "from": 1, "to": 2}]},
        {"changes": [{}]},
        {"changes": 5},
        {"changes": [1]},
        {"changes": [], "request": {}, "after": {"spec.x": HALF}, "before": {}},
        {"before": [1], "after": "x"},
        {"answer": {"code": 422, "fields": [{"field": "x", "message": HALF}]}},
        {"request": [HALF]},
    ],
)
def test_the_audit_trail_shows_a_row_that_it_cannot_draw(browser, columns):
    row, other = poisoned(**columns), poisoned(action="lease.release", changes=[])
    page = f"/c/a/leases/{KEY}/"
    said = f"Row {row.pk} is unreadable"
    for path in ("/audit/", f"/audit/{row.pk}/", page, f"{page}written/{row.pk}/"):
        answer = browser.get(path)
        assert answer.status_code == 200, path
        assert said in answer.content.decode(), path
    items = {item["id"]: item for item in browser.get("/audit/?format=json").json()["items"]}
    assert said in items[row.pk]["detail"]
    assert items[other.pk]["detail"] == ""
    lines = consume(browser.get("/audit/?format=ndjson")).splitlines()
    assert [json.loads(line)["id"] for line in lines] == [row.pk, other.pk]
    table = list(csv.DictReader(io.StringIO(consume(browser.get("/audit/?format=csv")))))
    assert [one["id"] for one in table] == [str(row.pk), str(other.pk)]


@pytest.mark.parametrize("columns", [{"change": "merged"}, {"kind": "quorum"}, {"fields": 7}])
def test_history_shows_a_row_that_it_cannot_read(browser, columns):
    row = to_row(a_change(1, at=NOW - timedelta(hours=1)))
    for name, value in columns.items():
        setattr(row, name, value)
    models.ChangeRecord.objects.bulk_create([row, to_row(a_change(2, at=NOW - timedelta(hours=2)))])
    row = models.ChangeRecord.objects.order_by("-at")[0]
    unreadable = "change" in columns  # the others are an unknown kind, and a text
    text = browser.get("/c/a/history/").content.decode()
    assert (f"Row {row.pk} of history is unreadable." in text) is unreadable
    for path in ("/c/a/", f"/c/a/leases/{row.namespace}/{row.name}/", "/c/a/timeline/"):
        assert browser.get(path).status_code in (200, 404), path
    items = browser.get("/c/a/history/?format=json").json()["items"]
    assert [one["change"] == "unreadable" for one in items] == [unreadable, False]
    lines = consume(browser.get("/c/a/history/?format=ndjson")).splitlines()
    assert len(lines) == 2
    assert (json.loads(lines[1])["fields"] == [f"row:{row.pk}"]) is unreadable
    table = list(csv.DictReader(io.StringIO(consume(browser.get("/c/a/history/?format=csv")))))
    assert len(table) == 2
    assert (table[1]["fields"] == f"row:{row.pk}") is unreadable


@pytest.mark.parametrize(
    "columns",
    [
        {"cause": "gremlins"},
        {"confidence": "sure"},
        {"leases": "[1"},
        {"evidence": "7"},
        {"story": "x"},
    ],
)
def test_incidents_show_one_that_they_cannot_read(browser, columns):
    change = a_change(1, at=NOW - timedelta(hours=1))
    store(incident_with(change, id="first"))
    models.IncidentRecord.objects.update(**columns)
    unreadable = "story" not in columns
    for path in ("/c/a/incidents/", "/c/a/incidents/first/"):
        answer = browser.get(path)
        assert answer.status_code == 200, path
        assert ("Incident first is unreadable." in answer.content.decode()) is unreadable
    for path in ("/c/a/", "/c/a/timeline/", "/c/a/incidents/?format=csv", "/c/a/reliability/"):
        assert browser.get(path).status_code == 200, path
        consume(browser.get(path))
    (item,) = browser.get("/c/a/incidents/?format=json").json()["items"]
    assert (item["sentence"] == "Incident first is unreadable.") is unreadable


def test_the_log_of_messages_shows_one_that_it_cannot_read(browser):
    receiver = models.Receiver.objects.create(name="ops", sort="webhook", created_at=NOW)
    row = models.Notification.objects.create(
        receiver=receiver, cluster="a", incident="first", step=0, stage="opened", content="{",
        made_at=NOW, due_at=NOW, state="sent",
    )  # fmt: skip
    text = browser.get("/notifications/log/").content.decode()
    assert f"Message {row.pk} is unreadable." in text


def test_the_security_log_shows_an_event_of_a_later_version(browser):
    models.SecurityRecord.objects.create(at=NOW, event="teleported", who="ada")
    assert "teleported" in browser.get("/security-log/").content.decode()
    for kind in ("json", "csv", "ndjson"):
        assert "teleported" in consume(browser.get(f"/security-log/?format={kind}"))


BYTES = "CAST(x'61ff62' AS TEXT)"  # as a broken disk leaves them, or an edit by hand
FILES = tuple(f"?format={kind}" for kind in ("json", "csv", "ndjson"))
# The columns that lose their text, what is said of the row, and where.
NO_TEXT = {
    models.ChangeRecord: (
        ("namespace", "kind", "holder", "writer", "fields", "change"),
        "Row {} of history is unreadable",
        ("/c/a/history/", "/c/a/", "/c/a/timeline/", *(f"/c/a/history/{one}" for one in FILES)),
    ),
    models.Edit: (
        ("username", "namespace", "action", "reason", "outcome", "detail", "changes", "before",
         "request", "address"),
        "Row {} is unreadable",
        ("/audit/", *(f"/audit/{one}" for one in FILES)),
    ),
    models.SecurityRecord: (
        ("event", "who", "address", "about", "outcome"),
        "Row {} is unreadable",
        ("/security-log/", *(f"/security-log/{one}" for one in FILES)),
    ),
    models.Notification: (("content",), "Message {} is unreadable", ("/notifications/log/",)),
    models.IncidentRecord: (
        ("cause", "sentence", "writer", "hosts", "leases", "evidence"),
        "Incident first is unreadable",
        ("/c/a/incidents/", "/c/a/incidents/first/", "/c/a/reliability/", "/c/a/",
         *(f"/c/a/incidents/{one}" for one in FILES[:2])),
    ),
}  # fmt: skip


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL keeps no such text")
@pytest.mark.parametrize("model", NO_TEXT)
def test_bytes_that_are_no_text_take_no_page_away(browser, model):
    table = model._meta.db_table
    columns, said, paths = NO_TEXT[model]
    receiver = models.Receiver.objects.create(name="ops", sort="webhook", created_at=NOW)
    for column in columns:
        change = a_change(1, at=NOW - timedelta(hours=1), fields=("labels",))
        for number in (1, 2):  # the other one stays as it is
            to_row(a_change(number, at=NOW - timedelta(hours=1), fields=("labels",))).save()
            poisoned(action="lease.release", changes=[])
            models.SecurityRecord.objects.create(at=NOW, event="sign_in", who="ada")
            models.Notification.objects.create(
                receiver=receiver, cluster="a", incident="first", step=number, stage="opened",
                content="{}", made_at=NOW, due_at=NOW, state="sent",
            )  # fmt: skip
        store(incident_with(change, id="first"))
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA ignore_check_constraints = ON")  # of JSON
            last = f"SELECT max(id) FROM {table}"  # noqa: S608 - names of this test
            cursor.execute(f"UPDATE {table} SET {column} = {BYTES} WHERE id = ({last})")  # noqa: S608
            number = cursor.execute(last).fetchone()[0]
            cursor.execute("PRAGMA ignore_check_constraints = OFF")
        drawn = {path: browser.get(path) for path in paths}
        assert {path for path, one in drawn.items() if one.status_code != 200} == set(), column
        texts = list(map(consume, drawn.values()))
        assert column == "kind" or said.format(number) in texts[0], column
        for one in NO_TEXT:
            one.objects.all().delete()
