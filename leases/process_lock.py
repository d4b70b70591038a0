"""A file that one process at a time locks. The kernel unlocks it when the process ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class InUse(Exception):
    """Another process holds the lock; the text says what to do."""


class ProcessLock:
    """Held from `take` to `release`, or until the process ends."""

    def __init__(self, path: Path, *, refusal: str) -> None:
        self._path = path
        self._refusal = refusal
        self._file: int | None = None

    def take(self) -> None:
        """Raises InUse with `refusal` as its text, and OSError when the file cannot be written."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise InUse(self._refusal) from None
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
