"""The directory that keeps the database, the keys and the kubeconfig."""

from __future__ import annotations

import tempfile
from pathlib import Path


class BadDataDirectory(Exception):
    """The directory cannot be made or written; the text says what to do."""


def open_data_directory(data: Path) -> Path:
    """Make it where it is missing, for its owner alone, and see that files can be made in it."""
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=data):
            pass
    except OSError as error:
        reason = "it is a file" if data.is_file() else (error.strerror or str(error)).lower()
        raise BadDataDirectory(
            f"LEASEBOARD_DATA cannot be {str(data)[:200]!r} ({reason}): "
            "name a directory that can be written, or one that can be made."
        ) from error
    return data
