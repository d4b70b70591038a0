"""What a backup says of itself: the first member of its tar file, as JSON."""

from __future__ import annotations

from datetime import datetime

import msgspec

from dashboard.serving.newer_database import unknown_migrations

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
