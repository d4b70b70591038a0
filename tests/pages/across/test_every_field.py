"""Every field of the short forms takes any value: it is used, or refused."""

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


@pytest.mark.parametrize(
    ("shown", "posted", "given"),
    [
        ("/wall-links/", "/wall-links/", {"name": "hall", "clusters": "a", "days": "7"}),
        ("/c/a/incidents/first/", "", {"text": "Rack 14."}),
        ("/c/a/leases/kube-system/scheduler/", "kind/", OVERRIDES),
        ("/c/a/leases/kube-system/scheduler/", "vacancy/", OVERRIDES),
        ("/sign-in/", "/sign-in/", {"username": "ada", "password": "x"}),
        ("/sign-in/nobody/", "/sign-in/link/", {"token": "nobody"}),
    ],
)
def test_any_value_of_a_form_is_used_or_refused(admin, board, shown, posted, given, monkeypatch):
    fill(board.clusters["a"].store, a_lease())
    store(incident_with(id="first"))
    reader = Client()
    if not posted.startswith("/sign-in/"):
        reader = admin
        remember(User.objects.get(username="ada"), monkeypatch)
    drawn = fields_of(reader.get(shown).content.decode())
    assert drawn - {"next", "username", "password"} <= set(given), "a field without a test"
    for field in given:
        for value in VALUES:
            sent = {**given, field: unquote(value)}
            answer = reader.post(urljoin(shown, posted), sent)
            assert answer.status_code in (200, 302, 400, 410, 422, 429), (field, value[:40])
            assert "Traceback" not in answer.content.decode()
