"""What an API token opens, for how long, and what a program without one is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError
from django.db.models import QuerySet
from django.test import Client

from dashboard import clock
from dashboard.access import api_tokens
from leases.models import ApiToken, SecurityRecord
from tests.support.board import board, member  # noqa: F401

pytestmark = pytest.mark.django_db

T0 = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)
HISTORY = "/c/a/history/?format=json"


@pytest.fixture(autouse=True)
def noon(monkeypatch, board):  # noqa: F811
    monkeypatch.setattr(clock, "now", lambda: T0)
    monkeypatch.setattr(api_tokens, "REFUSALS", api_tokens.Refusals())


@pytest.fixture
def made(db):
    olga = member("olga", "operator")
    return api_tokens.create(
        name="ci", user=olga, role="operator", now=T0 - DAY, expires_at=T0 + DAY
    )


def by(text: str, **more: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {text}"}, **more)


def refused(answer) -> str:
    assert (answer.status_code, answer["Content-Type"]) == (401, "application/problem+json")
    problem = answer.json()
    assert (problem["status"], problem["title"]) == (401, "Unauthorized")
    return problem["detail"]


def test_a_token_reads_and_its_text_is_stored_nowhere(made):
    text = made[1]
    assert by(text).get(HISTORY).json()["items"] == []
    assert by(text).get("/c/a/history/?format=csv").status_code == 200
    assert text not in str(list(ApiToken.objects.values_list()))
    assert str(SecurityRecord.objects.values_list()).count(text) == 0


def test_a_program_without_a_token_gets_401_and_a_browser_the_sign_in_page(made):
    for headers in ({}, {"Accept": "application/json"}, {"Accept": "*/*"}):
        answer = Client(headers=headers).get(HISTORY)
        assert refused(answer).startswith("Send an API token as Authorization: Bearer")
        assert answer["WWW-Authenticate"] == "Bearer"
    assert refused(Client(headers={"Accept": "application/json"}).get("/c/a/leases/"))
    browser = Client(headers={"Accept": "text/html,*/*;q=0.8"})
    assert browser.get(HISTORY)["Location"].startswith("/sign-in/?next=")
    assert Client().get("/c/a/history/")["Location"].startswith("/sign-in/?next=")


def revoke(token: ApiToken) -> None:
    assert api_tokens.revoke(token.pk, now=T0 - timedelta(hours=1))
    assert not api_tokens.revoke(token.pk, now=T0)


def expire(token: ApiToken) -> None:
    ApiToken.objects.update(expires_at=T0)


def deactivate(token: ApiToken) -> None:
    token.user.is_active = False
    token.user.save()


ENDS = {
    "revoked on 2026-11-20 at 11:00 UTC. Make a new one": revoke,
    "expired on 2026-11-20 at 12:00 UTC. Make a new one": expire,
    "account of this API token is deactivated": deactivate,
    "may not read Leases. Ask an admin": lambda token: token.user.groups.clear(),
    "not known here: copy it whole": lambda token: token.delete(),
}


@pytest.mark.parametrize("reason", ENDS)
def test_a_token_that_ended_says_why_at_once_and_is_kept_once_a_minute(made, reason, monkeypatch):
    token, text = made
    ENDS[reason](token)
    answer = by(text, REMOTE_ADDR="10.0.0.9").get(HISTORY)
    assert reason in refused(answer)
    assert answer["WWW-Authenticate"] == 'Bearer error="invalid_token"'
    by(text, REMOTE_ADDR="10.0.0.9").get(HISTORY)
    kept = SecurityRecord.objects.filter(event="token_used_refused")
    ((who, address),) = kept.values_list("who", "address")
    assert (who, address) == ("olga" if ApiToken.objects.exists() else "unknown token", "10.0.0.9")
    monkeypatch.setattr(clock, "now", lambda: T0 + timedelta(minutes=1))
    by(text, REMOTE_ADDR="10.0.0.9").get(HISTORY)
    assert kept.count() == 2


def test_an_admins_token_of_an_operator_who_lost_the_role_reads_less():
    ada = member("ada", "admin")
    _, text = api_tokens.create(name="x", user=ada, role="admin", now=T0, expires_at=T0 + DAY)
    assert by(text).get(HISTORY).status_code == 200
    assert by(text).get("/c/a/leases/new/").status_code == 403, "no token edits"
    answer = by(text).get("/wall-links/")
    assert (answer.status_code, answer["Content-Type"]) == (403, "application/problem+json")


def test_a_token_writes_nothing_and_needs_no_csrf_token_to_hear_so(made):
    _, text = made
    strict = Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {text}"})
    for path in ("/c/a/leases/new/", "/sign-out/", "/wall-links/"):
        assert strict.post(path, {}).json()["detail"] == api_tokens.ONLY_READS


def test_when_it_was_used_is_written_once_a_minute(made, monkeypatch):
    token, text = made

    def used_at(now: datetime) -> datetime | None:
        monkeypatch.setattr(clock, "now", lambda: now)
        assert by(text).get(HISTORY).status_code == 200
        token.refresh_from_db()
        return token.last_used_at

    assert used_at(T0) == T0
    assert used_at(T0 + timedelta(seconds=59)) == T0
    assert used_at(T0 + timedelta(seconds=60)) == T0 + timedelta(seconds=60)


def test_a_full_disk_does_not_keep_programs_out(made, monkeypatch):
    def refuse(*_args: object, **_values: object) -> int:
        raise OperationalError("disk full")

    monkeypatch.setattr(QuerySet, "update", refuse)
    assert by(made[1]).get(HISTORY).status_code == 200


def test_metrics_take_an_api_token_beside_the_one_of_the_settings(made, settings):
    settings.LEASEBOARD = replace(settings.LEASEBOARD, metrics_token="s3cret")
    assert by("s3cret").get("/metrics").status_code == 200
    assert by(made[1]).get("/metrics").status_code == 200
    assert by("lbt_wrong").get("/metrics").status_code == 401
    assert by("lbt_wrong").get("/healthz").status_code == 200
    assert refused(by("s3cret").get(HISTORY)), "it opens the metrics alone"


def test_what_is_not_there_is_a_problem_too(made):
    answer = by(made[1]).get("/c/nowhere/history/?format=json")
    assert (answer.status_code, answer.json()["detail"]) == (
        404, "No cluster is called 'nowhere' here. Watched: a, b.",
    )  # fmt: skip
    assert by(made[1]).get("/nowhere/").json()["detail"] == "Check the address."
