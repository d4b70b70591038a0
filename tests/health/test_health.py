"""For probes: alive, and ready once every cluster has been listed."""

from __future__ import annotations

import logging

import pytest
from django.test import Client

from dashboard.config import VERSION
from tests.support.board import a_lease, fill

pytestmark = pytest.mark.django_db


def test_the_process_answers(board):
    answer = Client().get("/healthz")
    assert answer.content == b"ok\n"
    assert answer.headers["Leaseboard-Version"] == VERSION


def test_ready_only_once_every_cluster_has_been_listed(board, operator):
    fill(board.clusters["a"].store, a_lease())
    answer = operator.get("/readyz")
    assert answer.status_code == 503
    assert answer.content.decode().startswith("cluster b: connecting.")
    fill(board.clusters["b"].store)
    assert Client().get("/readyz").status_code == 200


def test_a_process_that_is_about_to_end_is_not_ready(board):
    fill(board.clusters["a"].store)
    fill(board.clusters["b"].store)
    board.leave()
    assert Client().get("/readyz").content == b"stopping\n"
    assert Client().get("/healthz").status_code == 200


def test_a_probe_that_comes_too_early_is_no_error_in_the_log(board, monkeypatch):
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    monkeypatch.setattr(logging.getLogger("django"), "handlers", [handler])
    assert Client().get("/readyz").status_code == 503
    assert records == []
    logging.getLogger("django.request").error("broken", extra={"status_code": 500})
    assert [record.getMessage() for record in records] == ["broken"]
