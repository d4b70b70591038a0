"""One `serve` at a time over one SQLite history: two would each take what the other wrote for
news. Replicas share a PostgreSQL instead.

The kernel lets go of the lock when the process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class HistoryInUse(Exception):
    """Another process serves this history; the text says what to do."""


def lock_history(database: Path) -> int:
    """Hold the history of this SQLite file until the process ends or closes the descriptor.

    Raises HistoryInUse, and OSError when the lock file cannot be written.
    """
    path = database.resolve()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = os.open(path.with_name(f"{path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise HistoryInUse(
            f"Another serve writes the history in {path}: stop it, give this one another "
            "LEASEBOARD_DATA, or let both share a PostgreSQL (LEASEBOARD_DATABASE_URL)."
        ) from None
    return file
