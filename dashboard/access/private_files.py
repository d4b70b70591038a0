"""What lies in the data directory is for its owner alone: keys, sessions, tokens and history.

Settings call this, so it holds for every command that reads them.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

UMASK = 0o077  # what this process makes is for its owner alone
OTHERS = 0o077  # the bits of a mode that let others in


def keep_private(data: Path, database: Path | None) -> None:
    """Let this process make private files, and take from others what an earlier one left open.

    `database` is an SQLite file that may lie elsewhere. What belongs to another user, as a
    mounted volume may, is left as it is.
    """
    os.umask(UMASK)
    with suppress(OSError):  # a path that cannot be used stops the start elsewhere, in a sentence
        if not data.stat().st_mode & stat.S_ISVTX:  # /tmp belongs to everybody
            for path in (data, *data.iterdir(), *(data / "static").rglob("*")):
                _close(path)
    if database is not None:
        for tail in ("", "-wal", "-shm", "-journal"):
            _close(database.with_name(database.name + tail))


def _close(path: Path) -> None:
    with suppress(OSError):  # gone meanwhile, somebody else's, or on a read-only disk
        mode = path.lstat().st_mode
        if mode & OTHERS and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            path.chmod(stat.S_IMODE(mode) & ~OTHERS)
