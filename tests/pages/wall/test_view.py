"""The wall."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from leases.domain.connection import Connection, ConnectionState
from leases.domain.lease import ObjectName
from tests.pages.conftest import text_of
from tests.support.board import KEY, a_lease, fill


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


def expired_leases(store, number: int) -> None:
    """So many elections that ran out in namespace apps, and two vacant ones."""
    fill(
        store,
        *(a_lease(ObjectName("apps", f"out-{n:03}")) for n in range(number)),
        *(a_lease(ObjectName("apps", f"free-{n}"), holder=None) for n in range(2)),
    )
    while store.turn(datetime.now(UTC) + timedelta(minutes=1)):
        pass


def rest_of(html: str) -> tuple[str, str]:
    """What the last row of the lanes says, and the numbers that the page adds to its own."""
    found = re.search(r'data-beyond="([\d ]+)"( hidden)?>([^<]*)<', html)
    return found[3], found[1]


@pytest.mark.parametrize(
    ("expired", "query", "says", "beyond"),
    [
        (6, "", "", "0 0 0 0"),
        (7, "", "2 more vacant", "0 0 0 0"),
        (12, "", "5 more expired, 2 more vacant", "0 0 0 0"),
        (12, "?phase=expired", "5 more expired", "0 0 0 0"),
        (12, "?q=out-00", "3 more expired", "0 0 0 0"),
        (12, "?q=free", "", "0 0 0 0"),
        (310, "", "303 more expired, 2 more vacant", "10 0 2 0"),
    ],
)
def test_a_wall_with_more_trouble_than_rows_counts_the_rest(
    store, operator, expired, query, says, beyond
):
    expired_leases(store, expired)
    html = text_of(operator.get(f"/c/a/wall/{query}"))
    assert rest_of(html) == (says, beyond)


def test_the_side_of_the_wall_counts_what_it_does_not_name(store, operator):
    expired_leases(store, 6)
    side = text_of(operator.get("/c/a/wall/?kind=lock"))
    assert '<p class="w-more">2 more expired, 2 more vacant</p>' in side
