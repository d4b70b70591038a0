"""Empty the database after a test that commits, but for what the migrations leave in it.

Django's own flush empties all tables and makes permissions, roles and content types anew, which
takes ten times as long.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, transaction
from django.test import TransactionTestCase

KEPT = (ContentType, Permission, Group, Group.permissions.through)


class QuickFlush:
    """Stands in for the end of each TransactionTestCase; made when the migrations have run."""

    def __init__(self) -> None:
        self._kept = _rows()

    def install(self) -> None:
        def end(case: TransactionTestCase) -> None:
            self._flush()

        TransactionTestCase._fixture_teardown = end  # type: ignore[attr-defined]

    def _flush(self) -> None:
        if _rows() != self._kept:  # the test has changed them: make them anew
            call_command("flush", verbosity=0, interactive=False, reset_sequences=False)
            self._kept = _rows()
            return
        names = connection.introspection.django_table_names(only_existing=True, include_views=False)
        emptied = set(names) - {model._meta.db_table for model in KEPT}
        if connection.vendor == "postgresql":  # TRUNCATE writes every file and index anew
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("; ".join(f'DELETE FROM "{name}"' for name in emptied))  # noqa: S608
            return
        statements = connection.ops.sql_flush(no_style(), sorted(emptied))
        connection.ops.execute_sql_flush(statements)


def empty() -> None:
    """What the end of a test that commits does, for what several tests have read."""
    TransactionTestCase()._fixture_teardown()  # type: ignore[attr-defined]


def _rows() -> list[Any]:
    return [sorted(model.objects.values_list()) for model in KEPT]
