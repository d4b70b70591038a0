"""`backup`: history, accounts and keys in one file, also while `serve` runs."""

import sqlite3
import stat
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from dashboard.access.security_log import SecurityEvent, record
from dashboard.management.backups import Damaged, write_backup
from dashboard.management.refusing import RefusingCommand


def _check_place(file: Path, *, overwrite: bool) -> None:
    """Refuse what a backup would replace by mistake: it takes the name, whatever has it now."""
    try:
        mode = file.lstat().st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # a name too long, or with a NUL
        reason = getattr(error, "strerror", None) or error
        raise CommandError(
            f"{str(file)[:200]!r} cannot be used ({reason}): name a file."
        ) from error
    if stat.S_ISDIR(mode):
        raise CommandError(f"{file} is a directory: name a file.")
    if not stat.S_ISREG(mode):
        what = "a link" if stat.S_ISLNK(mode) else "a device, a pipe or a socket"
        raise CommandError(f"{file} is {what}, no file: name the backup itself.")
    if not overwrite:
        raise CommandError(f"{file} exists: choose another name, or add --overwrite.")


class Command(RefusingCommand):
    help = "Write the SQLite history and what else a restore needs into one file."
    requires_system_checks = []
    reads_history = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="the backup to write, a tar file")
        parser.add_argument("--overwrite", action="store_true", help="replace an existing file")

    def handle(self, *, file: Path, overwrite: bool, **options: Any) -> None:
        database = settings.SQLITE_FILE
        if database is None:
            raise CommandError(
                "The history is in PostgreSQL: back it up with pg_dump, and keep "
                "LEASEBOARD_SECRET_KEY with it."
            )
        _check_place(file, overwrite=overwrite)
        try:
            manifest = write_backup(file, data=settings.LEASEBOARD.data, database=database)
        except OSError as error:
            raise CommandError(
                f"{file} cannot be written ({error.strerror or error}): choose another place; it "
                "needs room for the databases twice."
            ) from error
        except (sqlite3.Error, Damaged) as error:
            raise CommandError(
                f"The database {database} cannot be copied ({error}); nothing was written. Run "
                "manage.py doctor."
            ) from error
        record(SecurityEvent.EXPORT, who="manage.py", address="", about=f"backup {file.name}")
        self.stdout.write(f"Wrote {file} ({file.stat().st_size / 2**20:,.1f} MiB).")
        self.stdout.write(manifest.sentence)
