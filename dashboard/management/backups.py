"""Copy what a restore needs into one file, and back."""

import hashlib
import os
import shutil
import sqlite3
import tarfile
import tempfile
from contextlib import closing, suppress
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import IO

import msgspec

from dashboard.config import VERSION
from dashboard.serving.data_directory import unknown_migrations
from leases.private_files import flush_names

WAIT_SECONDS = 20.0


class Damaged(Exception):
    """SQLite finds the database damaged; the text is SQLite's."""


def copy_database(source: Path, target: Path) -> None:
    """Make `target` a file of its own, without a write-ahead log.

    Raises sqlite3.Error, and Damaged. Copies in one step: SQLite starts a copy in several steps
    anew after each write. In WAL mode the writers go on meanwhile.
    """
    with (
        closing(_open(source)) as there,
        closing(sqlite3.connect(target)) as copy,
    ):
        there.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        (said,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        if said != "ok":
            raise Damaged(str(said))


def fold_log(path: Path) -> None:
    """Bring what waits in the write-ahead log into the file. Raises sqlite3.Error."""
    with closing(_open(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("PRAGMA journal_mode = DELETE")


def applied_migrations(path: Path) -> list[str]:
    with closing(_open(path)) as database:
        return _migrations_in(database)


def _migrations_in(database: sqlite3.Connection) -> list[str]:
    rows = database.execute("SELECT app, name FROM django_migrations ORDER BY id")
    return [f"{app}.{name}" for app, name in rows]


def row_counts(path: Path) -> dict[str, int]:
    """The number of rows of each table."""
    with closing(_open(path)) as database:
        names = database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            " ORDER BY name"
        ).fetchall()
        return {
            name: database.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0]  # noqa: S608
            for (name,) in names
        }


def _open(path: Path, *, how: str = "mode=rw") -> sqlite3.Connection:
    """Never makes the file."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=WAIT_SECONDS)


FORMAT = 1
FILE_NAME = "manifest.json"
DATABASE = "leaseboard.sqlite3"  # as a member; settings may keep it under another name
LEASE_API = "lease_api.sqlite3"
# Without them everybody signs in again, the printed wall link is another one, and the clients of
# the embedded API need a new kubeconfig.
SECRETS = ("secret_key", "wall_link", "lease_api.crt", "lease_api.key", "kubeconfig")
MEMBERS = (*SECRETS, LEASE_API, DATABASE)  # restored in this order


class BadBackup(Exception):
    """The file cannot be restored; the text says why."""


class BackupFile(msgspec.Struct, frozen=True):
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`migrations` are app.name; `rows` are counts by table; `moment` is that of the history."""

    format: int
    version: str
    moment: datetime
    migrations: list[str]
    rows: dict[str, int]
    files: dict[str, BackupFile]

    @property
    def sentence(self) -> str:
        state = max((one for one in self.migrations if one.startswith("leases.")), default="none")
        counts = {
            "changes": self.rows.get("leases_change", 0),
            "incidents": self.rows.get("leases_incident", 0),
            "audited writes": self.rows.get("leases_edit", 0),
            "accounts": self.rows.get("auth_user", 0),
        }
        rows = ", ".join(
            f"{count:,} {what if count != 1 else what[:-1]}" for what, count in counts.items()
        )
        return (
            f"Leaseboard {self.version} (migrated to {state}) as of {self.moment:%Y-%m-%d %H:%M:%S}"
            f" UTC: {rows}; files {', '.join(self.files)}."
        )


def read_manifest(text: bytes) -> Manifest:
    """Raises BadBackup for one that this version cannot restore."""
    try:
        found = msgspec.json.decode(text, type=dict[str, object])
        if isinstance(found.get("format"), int) and found["format"] != FORMAT:
            raise BadBackup(f"it is of a newer Leaseboard ({found.get('version')}): install that")
        manifest = msgspec.json.decode(text, type=Manifest)
    except msgspec.MsgspecError as error:
        raise BadBackup(f"its {FILE_NAME} cannot be read") from error
    unknown = unknown_migrations(
        (app, name) for app, _, name in (one.partition(".") for one in manifest.migrations)
    )
    if unknown:
        raise BadBackup(
            f"it is of a newer Leaseboard ({manifest.version}, which migrated to {unknown[-1]}): "
            "install that or a newer one"
        )
    if DATABASE not in manifest.files or not set(manifest.files) <= set(MEMBERS):
        raise BadBackup(f"its {FILE_NAME} names other files than a backup has")
    return manifest


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
                _unpack_one(name, _plain_member(archive, name, member), drafts[name], member)
    except (tarfile.TarError, KeyError, EOFError, RecursionError, ValueError) as error:
        raise BadBackup("it is no backup, or it is cut off") from error
    _check_databases(manifest, drafts)
    return manifest


def _plain_member(archive: tarfile.TarFile, name: str, member: BackupFile) -> IO[bytes]:
    """A file as `backup` writes it: no link, which may lead to itself, and no sparse one, which
    takes gigabytes from a few bytes.
    """
    head = archive.getmember(name)
    source = archive.extractfile(head) if head.isreg() and not head.issparse() else None
    if source is None:
        raise BadBackup(f"{name} in it is no plain file")
    if head.size != member.bytes:
        raise BadBackup(f"{name} in it has another size than its {FILE_NAME} says")
    return source


def _check_databases(manifest: Manifest, drafts: dict[str, Path]) -> None:
    """A right checksum says only that the file is what somebody packed."""
    for name in (LEASE_API, DATABASE):
        if name not in manifest.files:
            continue
        try:
            with closing(_open(drafts[name], how="mode=ro&immutable=1")) as database:
                (said,) = database.execute("PRAGMA quick_check(1)").fetchone()
                if said != "ok":
                    raise BadBackup(f"{name} in it is damaged ({said})")
                if name == DATABASE:
                    applied = _migrations_in(database)
        except sqlite3.Error as error:
            raise BadBackup(f"{name} in it is no database that can be used ({error})") from error
    if sorted(applied) != sorted(manifest.migrations):
        raise BadBackup(f"{DATABASE} in it has other migrations than its {FILE_NAME} says")


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
