"""Files that only their owner can read, and files that one process at a time locks."""

import fcntl
import os
import tempfile
from pathlib import Path


def write_private(path: Path, content: bytes, *, replace: bool = True) -> None:
    """Write the whole file or nothing: draft, flush to disk, rename.

    With `replace` False, keep an existing file.
    """
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".new")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
        if replace:
            Path(draft).replace(path)
        elif not path.exists():
            path.hardlink_to(draft)
    except FileExistsError:  # another process made it in between
        pass
    finally:
        Path(draft).unlink(missing_ok=True)
    flush_names(path.parent)


def flush_names(directory: Path) -> None:
    """Let the names in a directory survive a power cut."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
