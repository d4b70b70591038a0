"""The wall."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from leases.domain.connection import Connection, ConnectionState
from tests.pages.conftest import text_of
from tests.support.board import KEY


def test_a_wall_that_never_saw_its_cluster_claims_nothing(board, operator):
    connection = Connection(
        state=ConnectionState.CONNECTING, since=datetime.now(UTC), detail="Cannot reach it."
    )
    board.clusters["b"].store.connection = connection
    html = text_of(operator.get("/c/b/wall/"))
    assert "No list of Leases yet." in html
    assert "Cannot reach it." in html
    assert "All in time" not in html


def test_the_wall_has_trouble_first_and_its_filter_only_in_the_url(store, operator):
    html = text_of(operator.get("/c/a/wall/"))
    assert re.findall(r'data-tile="([^"]+)"', html)[0] == "apps/free"
    assert "<form" not in html
    html = text_of(operator.get("/c/a/wall/?namespace=kube-system"))
    assert re.findall(r'data-tile="([^"]+)"', html) == [str(KEY)]
