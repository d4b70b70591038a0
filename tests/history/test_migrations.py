"""A database of the version before goes on with all that it holds."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from leases.domain.change import Change
from leases.domain.incident import Standing
from leases.history.find_changes import find
from leases.history.find_incidents import find_incidents
from leases.history.indexed_search import HistoryFilter
from leases.history.rows import WRITTEN, to_values
from leases.history.write_batch import write_changes
from tests.support.values.changes import T0, a_change
from tests.support.values.incident_rows import incident_with, store

pytestmark = pytest.mark.django_db(transaction=True)

NEW = ("writer", "cause", "incident")
BEFORE = ("leases", "0006_sign_in_link")


def migrate(*target: tuple[str, str]) -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(list(target) or executor.loader.graph.leaf_nodes("leases"))


def write_old(*changes: Change) -> None:
    """Store rows as a version did that knew no writers."""
    columns = [name for name in WRITTEN if name not in NEW]
    marks = ", ".join(["%s"] * len(columns))
    for change in changes:
        values = to_values(change, connection.ops.adapt_datetimefield_value)
        row = dict(zip(WRITTEN, values, strict=True))
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO leases_change ({', '.join(columns)}) VALUES ({marks})",  # noqa: S608
                [row[name] for name in columns],
            )


def test_holders_of_the_version_before_are_found():
    migrate(BEFORE)
    try:
        known = [a_change(1), a_change(2, holder="a\0b"), a_change(3, holder="h" * 900)]
        write_old(*known)
    finally:
        migrate()
    for change in known:
        found = find("a", HistoryFilter(holder=change.holder), limit=10)
        assert found.changes == [change]


def test_a_database_without_incidents_takes_them_up_and_rewrites_no_change():
    before = ("leases", "0013_deletion")
    migrate(before)
    try:
        write_old(a_change(1))
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan([("leases", "0014_incidents")])
        sql = "\n".join(executor.loader.collect_sql(plan))
    finally:
        migrate()
    assert "new__leases_change" not in sql, "SQLite would copy all changes"
    assert "UPDATE" not in sql
    late = a_change(2, writer="kubectl-edit")
    write_changes([a_change(1), late])
    store(incident_with(a_change(1), late))
    found = find("a", HistoryFilter(), limit=10).changes
    assert [(one.writer, one.incident) for one in found] == [("kubectl-edit", "one"), (None, "one")]


def test_incidents_that_lasted_long_before_are_found_by_any_part_of_their_time():
    day = timedelta(days=1)
    before = ("leases", "0020_reliability")
    migrate(before)
    try:
        rows = MigrationExecutor(connection).loader.project_state(before).apps
        record = rows.get_model("leases", "IncidentRecord")
        for name, lasted in (("long", 3 * day), ("short", day / 24)):
            values = {"cause": "crash", "confidence": "likely", "sentence": "", "changes": 1}
            times = {"began": T0, "ended": T0 + lasted, "updated_at": T0}
            record.objects.create(cluster="a", incident=name, settled=True, **values, **times)
    finally:
        migrate()
    (found,) = find_incidents("a", since=T0 + day, until=T0 + 2 * day, limit=9)
    assert found.incident.id == "long"


def test_incidents_of_before_are_planned_by_their_cause_and_their_cost():
    before = ("leases", "0021_incident_lasted_long")
    migrate(before)
    try:
        rows = MigrationExecutor(connection).loader.project_state(before).apps
        record = rows.get_model("leases", "IncidentRecord")
        values = {"confidence": "likely", "sentence": "", "changes": 1, "settled": True}
        times = {"began": T0, "ended": T0, "updated_at": T0}
        for name, cause, gap in (
            ("meant", "rollout", 3.0), ("slow", "drain", 40.0), ("crash", "crash", 3.0),
        ):  # fmt: skip
            record.objects.create(
                cluster="a", incident=name, cause=cause, worst_gap_seconds=gap, **values, **times
            )
    finally:
        migrate()
    found = {one.incident.id: one.incident.standing for one in find_incidents("a", limit=9)}
    assert found == {
        "meant": Standing.PLANNED, "slow": Standing.OVERRAN, "crash": Standing.UNPLANNED,
    }  # fmt: skip
    shown = find_incidents("a", planned=False, limit=9)
    assert {one.incident.id for one in shown} == {"slow", "crash"}


def test_permissions_to_read_changes_outlive_the_new_name_of_their_model():
    call_command("migrate", "leases", "0008", verbosity=0)
    before = set(Permission.objects.filter(codename="view_change").values_list("pk", flat=True))
    call_command("migrate", "leases", verbosity=0)
    after = set(Permission.objects.filter(codename="view_change").values_list("pk", flat=True))
    assert after == before
    assert len(after) == 1
