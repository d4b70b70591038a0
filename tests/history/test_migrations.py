"""A database of the version before goes on with all that it holds."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from leases.history.read.find_changes import find
from leases.history.read.indexed_search import HistoryFilter
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = ("leases", "0006_sign_in_link")


def migrate(*target: tuple[str, str]) -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(list(target) or executor.loader.graph.leaf_nodes("leases"))


def test_holders_of_the_version_before_are_found():
    migrate(BEFORE)
    try:
        known = [a_change(1), a_change(2, holder="a\0b"), a_change(3, holder="h" * 900)]
        for change in known:
            to_row(change).save()
    finally:
        migrate()
    for change in known:
        found = find("a", HistoryFilter(holder=change.holder), limit=10)
        assert found.changes == [change]


def test_permissions_to_read_changes_outlive_the_new_name_of_their_model():
    call_command("migrate", "leases", "0008", verbosity=0)
    before = set(Permission.objects.filter(codename="view_change").values_list("pk", flat=True))
    call_command("migrate", "leases", verbosity=0)
    after = set(Permission.objects.filter(codename="view_change").values_list("pk", flat=True))
    assert after == before
    assert len(after) == 1
