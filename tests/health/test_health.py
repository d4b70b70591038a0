"""For probes: alive, and ready while pages can be served, under any host."""

from __future__ import annotations

import logging

import pytest
from django.test import Client

from dashboard import clock
from dashboard.config import VERSION
from dashboard.serving.tasks.history_upkeep import STALLED, CountTimes
from tests.support.board import a_lease, fill

pytestmark = pytest.mark.django_db


def test_the_process_answers(board):
    answer = Client().get("/healthz")
    assert answer.content == b"ok\n"
    assert answer.headers["Leaseboard-Version"] == VERSION


def test_a_cluster_that_was_not_listed_is_named_and_fails_nothing(board, operator):
    fill(board.clusters["a"].store, a_lease())
    answer = operator.get("/readyz")
    assert answer.status_code == 200
    assert answer.content.decode().startswith("ok\ncluster b: connecting.")
    answer = Client().get("/readyz")
    assert answer.status_code == 200
    assert answer.content == b"ok\n1 of 2 clusters not listed, 0 tasks down\n"
    fill(board.clusters["b"].store)
    assert Client().get("/readyz").content == operator.get("/readyz").content == b"ok\n"


def test_totals_of_reliability_that_do_not_go_on_are_named_and_fail_nothing(board, operator):
    fill(board.clusters["a"].store)
    fill(board.clusters["b"].store)
    seconds = [0.0]
    board.counts = CountTimes(clock.now, lambda: seconds[0])
    assert Client().get("/readyz").content == b"ok\n"
    assert board.problem() is None
    seconds[0] = STALLED.total_seconds() + 1
    answer = Client().get("/readyz")
    assert answer.status_code == 200
    (line,) = answer.content.decode().splitlines()[1:]
    assert line.startswith("Reliability has not been counted since ")
    assert board.problem("a") == line
    assert "Reliability has not been counted since" in operator.get("/c/a/").content.decode()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
@pytest.mark.parametrize("https", [False, True])
@pytest.mark.parametrize("host", ["10.1.2.3:8000", "elsewhere.example", "[fd00::7]", "a/b"])
def test_a_probe_is_answered_under_any_host(board, settings, path, host, https):
    settings.ALLOWED_HOSTS = ["leases.example.com"]
    settings.SECURE_SSL_REDIRECT = https
    answer = Client().get(path, headers={"Host": host})
    assert answer.status_code == 200
    assert host not in answer.content.decode() + str(answer.headers)


@pytest.mark.parametrize(
    "path", ["/", "/sign-in/", "/healthz/", "/metrics/", "/c/a/metrics", "/api/openapi.json"]
)
def test_everything_else_stays_closed_to_unknown_hosts(board, settings, path):
    settings.ALLOWED_HOSTS = ["leases.example.com"]
    answer = Client().get(path, headers={"Host": "10.1.2.3:8000"})
    assert answer.status_code == 400


def test_a_process_that_is_about_to_end_is_not_ready(board):
    fill(board.clusters["a"].store)
    fill(board.clusters["b"].store)
    board.leave()
    assert Client().get("/readyz").content == b"stopping\n"
    assert Client().get("/healthz").status_code == 200


def test_a_probe_is_no_error_in_the_log(board, monkeypatch):
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    monkeypatch.setattr(logging.getLogger("django"), "handlers", [handler])
    board.leave()
    assert Client().get("/readyz").status_code == 503
    assert records == []
    logging.getLogger("django.request").error("broken", extra={"status_code": 500})
    assert [record.getMessage() for record in records] == ["broken"]
