"""Refuse a database that a newer version has migrated: this code does not know its tables."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from dashboard.configuration.version import VERSION


class NewerDatabase(Exception):
    """The database is of a newer version than this code; the text says what to do."""


@cache
def known_migrations() -> frozenset[tuple[str, str]]:
    """App and name of each migration of this code, and of those that it replaces."""
    there = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    return frozenset(there).union(*(migration.replaces for migration in there.values()))


def unknown_migrations(applied: Iterable[tuple[str, str]]) -> list[str]:
    """Those of the applied migrations (app, name) of our apps that this code does not have."""
    known = known_migrations()
    apps = {app for app, _ in known}
    return [f"{app}.{name}" for app, name in applied if app in apps and (app, name) not in known]


def check_not_newer(database: BaseDatabaseWrapper | None = None) -> None:
    """Raises NewerDatabase; and Django's Error if the database does not answer."""
    database = database or connection
    unknown = unknown_migrations(MigrationRecorder(database).applied_migrations())
    if unknown:
        which = "The database"
        if database.vendor == "sqlite":
            which = f"The database {database.settings_dict['NAME']}"
        raise NewerDatabase(
            f"{which} is of a newer version than this Leaseboard {VERSION}, which does not know "
            f"its migration {unknown[-1]}: install the newer version again, or restore the backup "
            "from before the upgrade."
        )


def refuse_newer(**_signal: Any) -> None:
    """Receiver of pre_migrate: `serve` and `migrate` leave a newer database alone."""
    check_not_newer()
