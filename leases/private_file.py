"""Files with secrets: readable by their owner alone, and whole after a power cut."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_private(path: Path, content: bytes, *, replace: bool = True) -> None:
    """Write a whole file or nothing: draft, flush to disk, move into place.

    With `replace` False, keep a file that is already there.
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
    _flush_names(path.parent)


def _flush_names(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
