"""A database of each earlier version migrates forward, and pages show its rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import Client

from dashboard.access.links import find
from leases.models import IncidentRecord, KindOverride, VacancyMark
from tests.history.databases.dump_today import WALL_TOKEN

KEPT = sorted((Path(__file__).parent / "databases").glob("*.sql"))


@pytest.fixture(params=KEPT, ids=lambda path: path.stem)
def earlier(request, tmp_path, monkeypatch, settings, django_db_blocker):
    """The default database is a copy of the earlier version's, migrated."""
    if connection.vendor != "sqlite":
        pytest.skip("the kept databases are SQLite's")
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    path = tmp_path / "earlier.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(request.param.read_text())
    with django_db_blocker.unblock():
        connection.close()
        with monkeypatch.context() as patched:
            patched.setitem(connection.settings_dict, "NAME", str(path))
            executor = MigrationExecutor(connection)
            plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
            sql = "\n".join(executor.loader.collect_sql(plan))
            call_command("migrate", verbosity=0)
            yield sql
            connection.close()


def test_no_migration_since_an_earlier_version_copies_all_changes(earlier):
    assert "new__leases_change" not in earlier, "SQLite would copy a table of millions of rows"
    assert 'UPDATE "leases_change"' not in earlier


def test_a_database_of_an_earlier_version_is_migrated_and_shown(earlier, board):
    browser = Client()
    posted = {"username": "ada", "password": "an old password"}
    assert browser.post("/sign-in/", posted).status_code == 302
    history = browser.get("/c/a/history/?from=2026-11-20T00:00&to=2026-11-21T00:00").content
    assert b"cp-3" in history
    audit = browser.get("/audit/?from=2026-11-20T00:00&to=2026-11-21T00:00").content
    assert b"an old reason" in audit
    assert IncidentRecord.objects.get().cause == "node_down"
    assert browser.get("/c/a/incidents/one/").status_code == 200
    assert b"hall" in browser.get("/wall-links/").content
    assert find(WALL_TOKEN) is not None
    assert (KindOverride.objects.get().name, VacancyMark.objects.get().name) == ("odd", "spare")


def test_there_is_a_database_of_a_version():
    assert KEPT
