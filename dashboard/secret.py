"""The key that signs sessions and links: made once, kept in the data directory."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

FILE_NAME = "secret_key"


def secret_key(data: Path) -> str:
    """The kept key; made on first need, readable by its owner alone."""
    path = data / FILE_NAME
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(handle, "w") as file:
        file.write(secrets.token_urlsafe(50))
        file.flush()
        os.fsync(handle)  # or a disk that fails a moment later keeps an empty file
    return path.read_text().strip()
