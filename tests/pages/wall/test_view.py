"""The wall."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.board import running_board
from leases.domain.incident import Standing
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from tests.pages.conftest import released_after_all, text_of
from tests.support.board import KEY, a_lease, fill
from tests.support.values.incidents import open_incident


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


def test_who_had_no_holder_for_longer_comes_first(store, operator):
    names = released_after_all(store)
    html = text_of(operator.get("/c/a/wall/"))
    assert re.findall(r'data-tile="([^"]+)"', html) == names


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


def tell(*incidents) -> None:
    running_board().publisher.hubs["a"].going_on = lambda: incidents


def test_what_goes_as_planned_has_no_row_of_its_own(store, operator):
    expired_leases(store, 12)
    keys = [ObjectName("apps", f"out-{n:03}") for n in range(11)]
    tell(open_incident(*keys, standing=Standing.PLANNED))
    assert "data-incident" not in text_of(operator.get("/c/a/wall/"))
    tell(open_incident(*keys, standing=Standing.OVERRAN))
    assert "data-incident" in text_of(operator.get("/c/a/wall/"))


def test_an_incident_has_one_row_instead_of_those_of_its_leases(store, operator):
    expired_leases(store, 12)
    keys = [ObjectName("apps", f"out-{n:03}") for n in range(11)]
    tell(open_incident(*keys))
    html = text_of(operator.get("/c/a/wall/"))
    assert open_incident().sentence.replace("'", "&#x27;") in html
    assert "Node down, likely, 11 Leases" in html
    assert re.findall(r'data-tile="([^"]+)"', html) == [
        "apps/out-011",
        "apps/free-0",
        "apps/free-1",
    ]
    assert rest_of(html) == ("", "0 0 0 0")
    side = text_of(operator.get("/c/a/wall/?kind=lock"))
    assert "data-incident" not in side
    elsewhere = text_of(operator.get("/c/a/wall/?namespace=kube-system"))
    assert "data-incident" not in elsewhere


def test_a_lease_that_was_lost_again_has_a_row_beside_its_old_incident(store, operator):
    expired_leases(store, 4)
    keys = [ObjectName("apps", f"out-{n:03}") for n in range(4)]
    tell(open_incident(*keys, held_since=keys[3:]))
    html = text_of(operator.get("/c/a/wall/"))
    assert "Node down, likely, 4 Leases" in html
    assert re.findall(r'data-tile="([^"]+)"', html)[0] == "apps/out-003"


def test_a_wall_has_room_for_three_incidents_and_names_the_leases_of_the_others(store, operator):
    expired_leases(store, 15)
    names = [[ObjectName("apps", f"out-{3 * n + m:03}") for m in range(3)] for n in range(4)]
    tell(*(open_incident(*keys, id=f"i{n}") for n, keys in enumerate(names)))
    html = text_of(operator.get("/c/a/wall/"))
    assert re.findall(r'data-incident="([^"]+)"', html) == ["i0", "i1", "i2"]
    assert "apps/out-008" not in html
    assert "apps/out-009" in html
    assert "1 more incident" in html
    assert rest_of(html)[0] == "5 more expired, 2 more vacant"


def test_leases_beside_the_lanes_are_told_by_an_incident_and_never_called_fine(store, operator):
    names = [f"worker-{n}" for n in range(3)]
    dead = [ObjectName("kube-node-lease", name) for name in names]
    fill(store, *(a_lease(key, holder=key.name) for key in dead))
    while store.turn(datetime.now(UTC) + timedelta(minutes=1)):
        pass
    tell(open_incident(*dead))
    html = text_of(operator.get("/c/a/wall/"))
    assert "3 in trouble, shown as incidents" in html
    assert "All in time" not in html


def test_an_incident_of_few_leases_leaves_them_their_own_rows(store, operator):
    expired_leases(store, 2)
    tell(open_incident(*(ObjectName("apps", f"out-{n:03}") for n in range(2))))
    html = text_of(operator.get("/c/a/wall/"))
    assert "data-incident" not in html
    assert 'data-tile="apps/out-001"' in html


def test_a_free_lock_is_no_trouble_that_the_wall_colours(board, operator):
    store = board.clusters["a"].store
    lock, election = ObjectName("apps", "lock"), ObjectName("apps", "election")
    fill(store, a_lease(lock, holder=None), a_lease(election))
    store.set_overrides({lock: (Kind.LOCK, "set by ada")}, datetime.now(UTC))
    assert 'class="w-count is-vacant free"' in text_of(operator.get("/c/a/wall/"))
    fill(store, a_lease(lock, holder=None), a_lease(election, holder=None, version="2"))
    assert 'class="w-count is-vacant"' in text_of(operator.get("/c/a/wall/"))


def test_a_free_lock_has_a_quiet_tile(board, operator):
    store = board.clusters["a"].store
    lock, election = ObjectName("apps", "lock"), ObjectName("apps", "election")
    fill(store, a_lease(lock, holder=None), a_lease(election))
    store.set_overrides({lock: (Kind.LOCK, "set by ada")}, datetime.now(UTC))
    html = operator.get("/c/a/wall/?kind=lock&kind=election").content.decode()
    tiles = re.findall(r'class="w-lane ([^"]*)" data-tile="apps/(\w+)" data-rank="(\d)', html)
    assert sorted(tiles) == [("is-held", "election", "4"), ("is-vacant excused", "lock", "5")]
