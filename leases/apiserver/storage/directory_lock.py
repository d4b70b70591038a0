"""One server at a time over a data directory: two would give the same resourceVersions."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

FILE_NAME = "lease_api.lock"


class InUse(Exception):
    """Another process serves the directory; the text says what to do."""


class DirectoryLock:
    """Held from `take` to `release`, or until the process ends, however it ends."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: int | None = None

    def take(self) -> None:
        """Raises InUse, and OSError when the directory cannot be written."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self._directory / FILE_NAME, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise InUse(
                f"Another process serves the Lease API of {self._directory}: "
                "stop it, or choose another LEASEBOARD_DATA."
            ) from None
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
