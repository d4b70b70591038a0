"""Write a backup: a tar file with a manifest, the databases, and the keys of the data directory."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import msgspec

from dashboard.configuration.version import VERSION
from dashboard.management.backups.copy_database import (
    applied_migrations,
    copy_database,
    row_counts,
)
from dashboard.management.backups.manifest import (
    DATABASE,
    FILE_NAME,
    FORMAT,
    LEASE_API,
    SECRETS,
    BackupFile,
    Manifest,
)
from leases.private_file import flush_names


def write_backup(file: Path, *, data: Path, database: Path) -> Manifest:
    """Write the whole file or nothing. Raises OSError, sqlite3.Error and Damaged.

    Copies are made beside the file first: that place needs room for the databases twice.
    """
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as place:
        folder = Path(place)
        for name in SECRETS:  # before the database: they rarely change, and not together with it
            if (data / name).is_file():
                shutil.copyfile(data / name, folder / name)
        moment = datetime.now(UTC)
        copy_database(database, folder / DATABASE)
        if (data / LEASE_API).exists():
            copy_database(data / LEASE_API, folder / LEASE_API)
        manifest = Manifest(
            format=FORMAT,
            version=VERSION,
            moment=moment,
            migrations=applied_migrations(folder / DATABASE),
            rows=row_counts(folder / DATABASE),
            files={path.name: _member(path) for path in sorted(folder.iterdir())},
        )
        draft = folder / "draft"
        _write_tar(draft, folder, manifest)
        draft.replace(file)
    flush_names(file.parent)
    return manifest


def _write_tar(draft: Path, folder: Path, manifest: Manifest) -> None:
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as target:
        with tarfile.open(fileobj=target, mode="w") as archive:
            text = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
            archive.addfile(_head(FILE_NAME, len(text), manifest), BytesIO(text))
            for name, member in manifest.files.items():
                with (folder / name).open("rb") as content:
                    archive.addfile(_head(name, member.bytes, manifest), content)
        target.flush()
        os.fsync(target.fileno())


def _head(name: str, size: int, manifest: Manifest) -> tarfile.TarInfo:
    head = tarfile.TarInfo(name)
    head.size, head.mode, head.mtime = size, 0o600, int(manifest.moment.timestamp())
    return head


def _member(path: Path) -> BackupFile:
    with path.open("rb") as content:
        return BackupFile(path.stat().st_size, hashlib.file_digest(content, "sha256").hexdigest())
