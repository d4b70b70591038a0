"""Each question of the reliability page reads the index that answers it."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from leases.domain.figures import Period, Totals, start_of
from leases.domain.lease import ObjectName
from leases.history.reliability import (
    Scope,
    by_day,
    find_totals,
    save_day,
    save_sums,
    sums_by_namespace,
)

pytestmark = pytest.mark.django_db
DAYS = [date(2026, 11, 20), date(2026, 11, 21)]


@pytest.fixture
def kept(db):
    """Every Lease of one name in one namespace and of the other in the other, on two days."""
    for number, day in enumerate(DAYS):
        counted = [
            (ObjectName(namespace, name), Totals(gap_seconds=number + place, watched_seconds=100.0))
            for place, (namespace, name) in enumerate([("x", "a"), ("x", "b"), ("y", "a")], 1)
        ]
        save_day("c", day, start_of(day) + timedelta(days=1), counted)
        save_sums(sums_by_namespace("c", Period.DAY, day))


def check_plan(sql: str, *parts: str) -> None:
    """PostgreSQL plans by how many rows there are, which are few here."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            plan = " ".join(row[-1] for row in cursor.fetchall())
        assert [part for part in parts if part not in plan] == [], plan


def test_the_days_of_a_few_leases_are_those_of_their_whole_names(kept):
    keys = [ObjectName("x", "b"), ObjectName("y", "a"), ObjectName("y", "b")]
    with CaptureQueriesContext(connection) as said:
        found = by_day("c", DAYS, keys)
    gaps = [[found[key][day].gap_seconds for day in DAYS if day in found[key]] for key in keys]
    assert gaps == [[2, 3], [3, 4], []]
    (one,) = said.captured_queries
    check_plan(one["sql"], "SCAN wanted", "since=? AND namespace=? AND name=?")


@pytest.mark.parametrize(("scope", "names"), [(Scope.LEASE, ["b", "a"]), (Scope.NAMESPACE, [""])])
def test_a_namespace_is_found_by_its_name(kept, scope, names):
    with CaptureQueriesContext(connection) as said:
        found = find_totals("c", Period.DAY, DAYS[0], scope, objective=99, namespace="x")
        assert [row.key.name for row in found.all()] == names
    assert len(said) == 4
    for one in said.captured_queries:
        check_plan(one["sql"], "since=? AND namespace=?")
