"""For probes: alive, and ready once every cluster has been listed."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.dashboard.conftest import a_lease, fill

pytestmark = pytest.mark.django_db


def test_the_process_answers(board):
    assert Client().get("/healthz").content == b"ok\n"


def test_ready_only_once_every_cluster_has_been_listed(board):
    fill(board.clusters["a"].store, a_lease())
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert answer.content.decode().startswith("cluster b: connecting.")
    fill(board.clusters["b"].store)
    assert Client().get("/readyz").status_code == 200
