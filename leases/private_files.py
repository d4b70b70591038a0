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


_LOCKED_BYTES = 510, 0x4000_0002  # while SQLite has a file open: sqlite.org/fileformat.html


def is_open(database: Path) -> bool:
    """Whether another process has an SQLite file open. Ask before this process opens it."""
    try:
        with database.open("rb+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, *_LOCKED_BYTES)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def looking(database: Path) -> str:
    """An address under which SQLite changes nothing of a file, its log or its index.

    The last one to close a database writes its log into it, and the first one makes an index.
    """
    log = database.with_name(f"{database.name}-wal")
    if is_open(database):
        how = "mode=rw"  # others keep the log and the index
    elif log.is_file() and log.stat().st_size:
        how = "mode=ro&readonly_shm=1"
    else:
        how = "mode=ro&immutable=1"
    return f"{database.absolute().as_uri()}?{how}"
