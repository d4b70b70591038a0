"""`restore`: put a backup in the place of the history, accounts and keys of now."""

from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection

from dashboard.management.backups import BadBackup, restore_backup
from dashboard.management.refusing import RefusingCommand
from dashboard.serving.data_directory import history_lock
from leases.apiserver.serving import lock_of
from leases.private_files import InUse


class Command(RefusingCommand):
    help = "Restore a backup. What it replaces is kept in a folder beside."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a file that `backup` wrote")

    def handle(self, *, file: Path, **options: Any) -> None:
        data, database = settings.LEASEBOARD.data, settings.SQLITE_FILE
        if database is None:
            raise CommandError(
                "The history is in PostgreSQL: restore it with pg_restore or psql, from what "
                "pg_dump wrote."
            )
        connection.close()
        history = history_lock(
            database, refusal=f"A serve uses {database}: stop it before you restore a backup."
        )
        lease_api = lock_of(data)
        try:
            history.take()
            lease_api.take()
            manifest, aside = restore_backup(
                file, data=data, database=database, stamp=f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
            )
        except InUse as error:
            raise CommandError(str(error)) from error
        except BadBackup as error:
            raise CommandError(
                f"{file} cannot be restored: {error}. Nothing was replaced."
            ) from error
        except OSError as error:
            raise CommandError(
                f"{error.filename or file} cannot be used ({error.strerror or error}): put it "
                "right and restore again."
            ) from error
        finally:
            lease_api.release()
            history.release()
        self.stdout.write(f"Restored {file}. {manifest.sentence}")
        for folder in aside:
            self.stdout.write(f"What it replaced is kept in {folder}.")
        self.stdout.write("Start serve: it migrates the history if this version is newer.")
