"""Write a database of this version, with a few rows of each kind, as SQL text.

LEASEBOARD_DATA=$(mktemp -d) python3 -m tests.history.databases.dump_today > VERSION.sql

Run it once for each released version and keep all files here: a test migrates each one forward.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from datetime import timedelta

WALL_TOKEN = "wall-token-of-an-earlier-version"


def fill() -> None:
    from django.contrib.auth.models import Group, User

    from dashboard.access.kept_secrets import digest_of
    from leases.history.write_batch import write_changes
    from leases.models import Edit, KindOverride, VacancyMark, WallLink
    from tests.support.values.changes import T0, a_change
    from tests.support.values.incident_rows import incident_with, store

    changes = [a_change(number, holder=f"cp-{number}") for number in range(1, 4)]
    write_changes(changes)
    store(incident_with(*changes[:2]))
    ada = User.objects.create_user("ada", password="an old password")
    ada.groups.add(Group.objects.get(name="admin"))
    where = {"cluster": "a", "namespace": "kube-system"}
    Edit.objects.create(
        **where, name="scheduler", at=T0, closed_at=T0, user=ada, username="ada",
        action="lease.release", reason="an old reason", outcome="done",
    )  # fmt: skip
    KindOverride.objects.create(**where, name="odd", kind="election", username="ada", at=T0)
    VacancyMark.objects.create(**where, name="spare", username="ada", at=T0)
    WallLink.objects.create(
        name="hall", digest=digest_of(WALL_TOKEN), clusters=["a"], created_by="ada",
        created_at=T0, expires_at=T0 + timedelta(days=36_500),
    )  # fmt: skip


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0)
    fill()
    connection.close()
    with closing(sqlite3.connect(settings.SQLITE_FILE)) as database:
        for statement in database.iterdump():
            sys.stdout.write(f"{statement}\n")


if __name__ == "__main__":
    main()
