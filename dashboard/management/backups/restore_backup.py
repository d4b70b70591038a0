"""Put the files of a backup in place of those of a data directory, which are kept beside."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from dashboard.management.backups.copy_database import fold_log
from dashboard.management.backups.manifest import (
    DATABASE,
    FILE_NAME,
    LEASE_API,
    MEMBERS,
    BackupFile,
    BadBackup,
    Manifest,
    read_manifest,
)
from leases.private_file import flush_names

PIECE = 1 << 20  # bytes that are copied at a time
MAX_MANIFEST = 1 << 24  # bytes


def restore_backup(
    file: Path, *, data: Path, database: Path, stamp: str
) -> tuple[Manifest, list[Path]]:
    """Return the manifest, and the folders that now hold what was replaced.

    Raises BadBackup before anything is replaced, and OSError. Whoever calls holds the locks of
    both databases. Each file is replaced whole, the history last: if this is cut off before its
    end, the history is the one from before, and a second run restores everything.
    """
    targets = {name: data / name for name in MEMBERS} | {DATABASE: database}
    drafts = {name: path.with_name(f"{path.name}.restoring") for name, path in targets.items()}
    try:
        manifest = _unpack(file, drafts)
        aside: dict[Path, None] = {}
        for name in MEMBERS:
            if name in manifest.files:
                folder = targets[name].parent / f"replaced-{stamp}"
                if _keep(targets[name], folder, is_database=name in (DATABASE, LEASE_API)):
                    aside[folder] = None
                drafts[name].replace(targets[name])
                flush_names(targets[name].parent)
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
    return manifest, list(aside)


def _unpack(file: Path, drafts: dict[str, Path]) -> Manifest:
    try:
        with tarfile.open(file, "r:") as archive:
            head = archive.next()
            content = archive.extractfile(head) if head and head.name == FILE_NAME else None
            if content is None:
                raise BadBackup(f"it is a tar file without {FILE_NAME}")
            manifest = read_manifest(content.read(MAX_MANIFEST))
            for name, member in manifest.files.items():
                source = archive.extractfile(name)
                if source is None:
                    raise BadBackup(f"{name} in it is no file")
                _unpack_one(name, source, drafts[name], member)
    except (tarfile.TarError, KeyError, EOFError) as error:
        raise BadBackup("it is no backup, or it is cut off") from error
    return manifest


def _unpack_one(name: str, source: IO[bytes], draft: Path, member: BackupFile) -> None:
    draft.unlink(missing_ok=True)
    digest, size = hashlib.sha256(), 0
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as target:
        while piece := source.read(PIECE):
            digest.update(piece)
            size += len(piece)
            target.write(piece)
        target.flush()
        os.fsync(target.fileno())
    if (size, digest.hexdigest()) != (member.bytes, member.sha256):
        raise BadBackup(f"{name} in it is damaged: its checksum is another one")


def _keep(path: Path, folder: Path, *, is_database: bool) -> bool:
    """Give the file a second name in the folder; return whether there was a file."""
    if is_database:
        with suppress(sqlite3.Error):  # a damaged one is kept with its log as it is
            fold_log(path)
    logs = [path.with_name(f"{path.name}{tail}") for tail in ("-wal", "-shm", "-journal")]
    found = [one for one in (path, *logs) if one.exists()]
    for one in found:
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / one.name).hardlink_to(one)
    for log in logs:  # SQLite would apply a log that stays to the restored database
        log.unlink(missing_ok=True)
    return bool(found)
