"""The lock of an SQLite history: one `serve` or `restore` at a time."""

from __future__ import annotations

from pathlib import Path

from leases.process_lock import ProcessLock


def history_lock(database: Path, *, refusal: str) -> ProcessLock:
    path = database.resolve()
    return ProcessLock(path.with_name(f"{path.name}.lock"), refusal=refusal)
