"""Every field of the forms that concern no Lease's spec takes any value: it is used, or refused."""

from __future__ import annotations

import re
from urllib.parse import unquote, urljoin

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support.board import a_lease, fill, remember
from tests.support.values.edge_values import VALUES
from tests.support.values.incident_rows import incident_with, store


def fields_of(page: str) -> set[str]:
    """What the forms of a page send by POST, but for signing out and the guard against forgery."""
    names: set[str] = set()
    for form in re.findall(r'<form[^>]* method="post".*?</form>', page, re.DOTALL):
        names |= set(re.findall(r'<(?:input|select|textarea)[^>]* name="([^"]+)"', form))
    return names - {"csrfmiddlewaretoken"}


OVERRIDES = {"kind": "lock", "may_be_vacant": "true"}  # of two forms of one page


MOST_TURNS = 16
TO_EACH = ("a%00b", "1" + "0" * 5000)
RECEIVERS = "/notifications/receivers/new/"
MAIL = {
    "name": "mail", "host": "mail.example.com", "port": "587", "security": "tls",
    "username": "leases", "password": "x", "sender": "leases@example.com", "to": "a@example.com",
    "severities": "critical", "stages": "opened", "causes": "crash", "phases": "expired",
    "kinds": "election", "clusters": "a", "namespaces": "web", "leases": "web/*",
    "group_seconds": "0", "enabled": "on", "unplanned": "on",
}  # fmt: skip
WEBHOOK = {"name": "hook", "url": "https://example.com/", "secret": "x", "group_seconds": "0"}
QUIET = {"cluster": "a", "lease": "web/x", "since": "", "until": "", "reason": "an upgrade"}
HALL = {
    "name": "hall",
    "clusters": "a",
    "days": "7",
    "namespace": "prod",
    "kinds": "lock",
    "fleet": "",
    "zone": "UTC",
}
CASES = [
    ("/wall-links/", "/wall-links/", HALL),
    ("/account/time-zone/", "", {"zone": "Europe/Berlin", "next": "/audit/"}),
    ("/wall/", "/wall/", {"code": "ACDE 3467"}),
    ("/tokens/", "", {"name": "ci", "role": "operator", "days": "7"}),
    ("/badges/", "", {"name": "wiki", "cluster": "a", "lease": "kube-system/scheduler"}),
    ("/people/", "", {"username": "olga", "role": "operator"}),
    ("/c/a/incidents/first/", "", {"text": "Rack 14."}),
    ("/c/a/leases/kube-system/scheduler/", "kind/", OVERRIDES),
    ("/c/a/leases/kube-system/scheduler/", "vacancy/", OVERRIDES),
    ("/sign-in/", "/sign-in/", {"username": "ada", "password": "x"}),
    ("/sign-in/nobody/", "/sign-in/link/", {"token": "nobody"}),
    (f"{RECEIVERS}?sort=email", "?sort=email", MAIL),
    (RECEIVERS, "", WEBHOOK),  # its other fields are those of mail
    ("/notifications/quiet/", "", QUIET),
]


def fields_with_a_case(shown: str) -> set[str]:
    page = shown.partition("?")[0]
    return {name for one, _, given in CASES if one.partition("?")[0] == page for name in given}


def values_of(turn: int, given: dict[str, str]) -> tuple[str, ...]:
    """Some for each field, and together all."""
    turns = min(len(given), MOST_TURNS)
    return (*TO_EACH, *VALUES[turn % turns :: turns])


@pytest.mark.parametrize(("shown", "posted", "given"), CASES)
def test_any_value_of_a_form_is_used_or_refused(admin, board, shown, posted, given, monkeypatch):
    fill(board.clusters["a"].store, a_lease())
    store(incident_with(id="first"))
    reader = Client()
    if not posted.startswith("/sign-in/"):
        reader = admin
        remember(User.objects.get(username="ada"), monkeypatch)
    drawn = fields_of(reader.get(shown).content.decode())
    known = fields_with_a_case(shown) | {"next", "username", "password"}
    assert drawn <= known, "a field without a test"
    for turn, field in enumerate(given):
        for value in values_of(turn, given):
            sent = {**given, field: unquote(value)}
            answer = reader.post(urljoin(shown, posted), sent)
            assert answer.status_code in (200, 302, 400, 410, 422, 429), (field, value[:40])
            assert "Traceback" not in answer.content.decode()
