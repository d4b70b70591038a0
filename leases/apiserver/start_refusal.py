"""Explain in one sentence why the embedded Lease API cannot start and what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from leases.apiserver.storage.journal import FILE_NAME


class CannotStart(Exception):
    """A file of the data directory is unusable; the text says what to do."""


@contextmanager
def explained(data: Path) -> Iterator[None]:
    """Turn errors of files in the data directory into CannotStart."""
    try:
        yield
    except (sqlite3.Error, msgspec.MsgspecError) as error:
        raise CannotStart(
            f"{data / FILE_NAME} cannot be used ({error}): put a good copy in its place, or move "
            "it away to begin with no Leases and no tokens."
        ) from error
    except OSError as error:
        if error.filename is None:  # the port is taken, not a file
            raise
        reason = (error.strerror or str(error)).lower()
        raise CannotStart(
            f"{error.filename} cannot be used ({reason}): make it writable, move it away, or "
            "choose another LEASEBOARD_DATA."
        ) from error
