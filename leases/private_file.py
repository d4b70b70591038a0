"""Files with secrets: only their owner can read them, and they survive a power cut whole."""

from __future__ import annotations

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
