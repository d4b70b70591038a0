"""Whether what lies in a data directory is for its owner alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def everybody_may_read() -> Iterator[None]:
    """The umask of most systems, for what this process starts."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def open_to_others(data: Path) -> list[str]:
    return [
        f"{path} {path.lstat().st_mode & 0o777:o}"
        for path in (data, *data.rglob("*"))
        if path.lstat().st_mode & 0o077
    ]
