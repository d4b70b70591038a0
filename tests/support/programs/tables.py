"""The tables of the tests' database: the first worker of a run makes them, the others copy them."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from django.core.management import call_command
from django.db import connection

from tests.support.programs.prepared import SHARED


def begin() -> bool:
    """Put the tables where Django will look for its database of tests; not in PostgreSQL."""
    if connection.vendor != "sqlite":
        return False
    folder = Path(os.environ[SHARED])
    made = folder / "tables.sqlite3"
    with (folder / "tables lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            _make(folder / "unfinished.sqlite3")
            (folder / "unfinished.sqlite3").rename(made)
    shutil.copy2(made, connection.settings_dict["TEST"]["NAME"])
    return True


def _make(path: Path) -> None:
    name = connection.settings_dict["NAME"]
    connection.settings_dict["NAME"] = str(path)
    try:
        call_command("migrate", verbosity=0, interactive=False, run_syncdb=True)
        connection.close()
    finally:
        connection.settings_dict["NAME"] = name
