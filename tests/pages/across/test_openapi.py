"""The OpenAPI document says what programs are really answered, and leaves out no JSON."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator, FormatChecker

from dashboard.access.kept_secrets import digest_of
from dashboard.pages.api import openapi
from leases import models
from leases.domain.figures import Totals
from leases.history.reliability import save_day
from tests.support.board import KEY, a_lease, fill, member
from tests.support.every_url import every_page
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change
from tests.support.values.incident_rows import incident_with, store

pytestmark = pytest.mark.django_db

DOCUMENT = openapi("1.2.3")
OPERATIONS = {one["get"]["operationId"]: one["get"] for one in DOCUMENT["paths"].values()}
PATHS = {page.name: page.path for page in every_page()}
# The document itself, and what Leaseboard's own pages fetch.
FOR_PAGES = {"openapi", "node_cells"}
QUERIES = {
    "leases": ("", "&at={now}"),
    "lease": ("", "&at={now}"),
    "timeline": ("", "&range=24h"),
    "stretch": ("&range=24h",),
}
BAD = {
    "lease": "format=json&at=much",
    "incident": "format=nonsense",
    "holder": "format=json&range=much",
}


@pytest.fixture
def admin_browser(board) -> Client:
    """Something of everything that can be asked for."""
    now = datetime.now(UTC)
    fill(board.clusters["a"].store, a_lease(), a_lease(holder=None, version="2"))
    ada = member("ada", "admin")
    models.SavedView.objects.create(
        name="held", owner=ada, page="leases", cluster="a", query="phase=held", created_at=now
    )
    models.Edit.objects.create(
        at=now, user=ada, username="ada", cluster="a", namespace="kube-system", name="scheduler",
        action="lease.edit", changes=[{"field": "spec.holderIdentity", "from": "a", "to": None}],
    )  # fmt: skip
    changes = [a_change(n, at=now - timedelta(hours=n)) for n in (1, 2)]
    models.ChangeRecord.objects.bulk_create(map(to_row, changes))
    store(incident_with(*changes, id="first"))
    save_day("a", now.date(), now, [(KEY, Totals(gap_seconds=1.5, watched_seconds=9.0))])
    models.Badge.objects.create(
        name="wiki", digest=digest_of("nobody"), cluster="a", created_by="ada", created_at=now
    )
    browser = Client()
    browser.force_login(ada)  # which the security log has
    return browser


def closed(schema: Any) -> Any:
    """The schema without room for fields that the document does not name."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if "properties" in schema else {}
    return {name: closed(one) for name, one in schema.items()} | more


def check(name: str, answer: Any, status: str = "200") -> None:
    kind = "application/problem+json" if "problem" in answer["Content-Type"] else "application/json"
    schema = OPERATIONS[name]["responses"][status]["content"][kind]["schema"]
    whole = closed(schema) | {"components": closed(DOCUMENT["components"])}
    Draft202012Validator.check_schema(whole)
    Draft202012Validator(whole, format_checker=FormatChecker()).validate(answer.json())


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_real_answer_is_as_the_document_says(admin_browser, name):
    for query in QUERIES.get(name, ("",)):
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        answer = admin_browser.get(f"{PATHS[name]}?format=json{query.format(now=now)}")
        assert answer.status_code == 200, answer.content
        check(name, answer)
        if name != "near_misses":
            assert answer.json().get("items") != [], "an empty list shows nothing"
    if "400" not in OPERATIONS[name]["responses"]:
        return
    wrong = BAD.get(name, "format=json&page=none&limit=none")
    check(name, admin_browser.get(f"{PATHS[name]}?{wrong}"), "400")
    check(name, Client().get(f"{PATHS[name]}?format=json"), "401")
    elsewhere = PATHS[name].replace("/c/a/", "/c/nowhere/")
    if elsewhere != PATHS[name]:
        check(name, admin_browser.get(f"{elsewhere}?format=json"), "404")


def test_no_json_is_missing_in_the_document(admin_browser):
    with_json = {
        page.name
        for page in every_page()
        if admin_browser.get(f"{page.path}?format=json")["Content-Type"] == "application/json"
    }
    assert with_json - FOR_PAGES == set(OPERATIONS)


def test_the_document_and_its_page_are_served(admin_browser):
    answer = Client().get("/api/openapi.json")
    assert answer.json()["openapi"] == "3.1.0"
    assert answer.json()["paths"] == DOCUMENT["paths"]
    page = admin_browser.get("/api/").content.decode()
    for path in DOCUMENT["paths"]:
        assert f"<code>{path}</code>" in page
    assert "&quot;" not in page.split("<main")[1], "no value of the schema is shown raw"
