"""Bearer tokens: who a client is. Only their hashes are stored.

A user has the name of its token and one group, that name with an s. Roles are none (discovery
only), read and write.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import sqlite3
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from leases.apiserver.errors import unauthorized
from leases.apiserver.storage.journal import FILE_NAME, connect
from leases.wire.microtime import format_time

ROLES = ("none", "read", "write")
ANONYMOUS = "system:anonymous"
AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
MASTERS = "system:masters"
# Seconds between two looks whether another process changed the tokens.
_TRUSTED = 0.1


class TokenError(ValueError):
    """A token cannot be created or found; the text says what to do."""


class User(msgspec.Struct, frozen=True):
    """Who sends a request; `role` is one of ROLES, or empty without a token."""

    name: str
    role: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = {}


class Token(msgspec.Struct, frozen=True):
    """One token as `lease_tokens list` shows it, without its value."""

    name: str
    role: str
    created: str


_NOBODY = User(ANONYMOUS, "", (UNAUTHENTICATED,))


def _hashed(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).digest()


class Tokens:
    """The tokens of one data directory. May be used by several processes at once."""

    def __init__(self, directory: Path) -> None:
        self._database = connect(directory / FILE_NAME)
        self._generation = -1
        self._looked = -math.inf
        self._users: list[tuple[bytes, User]] = []

    def close(self) -> None:
        self._database.close()

    def create(self, name: str, role: str, value: str) -> None:
        """Raises TokenError when a token has this name or value."""
        row = (name, role, _hashed(value), format_time(datetime.now(UTC)))
        try:
            self._database.execute("INSERT INTO tokens VALUES (?, ?, ?, ?)", row)
        except sqlite3.IntegrityError:
            message = f"There is a token {name!r}, or one with this value; revoke it first."
            raise TokenError(message) from None
        self._changed()

    def replace(self, name: str, role: str, value: str) -> None:
        """Create a token and replace one of the same name."""
        row = (name, role, _hashed(value), format_time(datetime.now(UTC)))
        self._database.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?)", row)
        self._changed()

    def revoke(self, name: str) -> None:
        """Raises TokenError when no token has this name."""
        gone = self._database.execute("DELETE FROM tokens WHERE name = ?", (name,))
        if gone.rowcount == 0:
            raise TokenError(f"There is no token {name!r}; see `lease_tokens list`.")
        self._changed()

    def all(self) -> list[Token]:
        rows = self._database.execute("SELECT name, role, created FROM tokens ORDER BY name")
        return [Token(*row) for row in rows]

    def _changed(self) -> None:
        self._looked = -math.inf
        self._database.execute("UPDATE meta SET value = value + 1 WHERE key = 'tokens'")

    def _fresh(self) -> list[tuple[bytes, User]]:
        (generation,) = self._database.execute(
            "SELECT value FROM meta WHERE key = 'tokens'"
        ).fetchone()
        if generation != self._generation:
            rows = self._database.execute("SELECT hash, name, role FROM tokens")
            self._users = [
                (bytes(digest), User(name, role, (f"{name}s", AUTHENTICATED)))
                for digest, name, role in rows
            ]
            self._generation = generation
        self._looked = time.monotonic()
        return self._users

    def user(self, authorization: str | None) -> User:
        """The user of an Authorization header; anonymous without a readable one. Raises 401."""
        scheme, _, rest = (authorization or "").strip().partition(" ")
        value = rest.split(" ", 1)[0]
        if scheme.lower() != "bearer" or not value:
            return _NOBODY
        digest = _hashed(value)
        trusted = time.monotonic() - self._looked < _TRUSTED
        found = _of(digest, self._users) if trusted else None
        if found is None:
            found = _of(digest, self._fresh())
        if found is None:
            raise unauthorized()
        return found

    def subject(
        self,
        name: str,
        groups: tuple[str, ...],
        uid: str = "",
        extra: dict[str, tuple[str, ...]] | None = None,
    ) -> User:
        """A user with the rights of the token of that name; system:masters may do everything."""
        roles = {user.name: user.role for _, user in self._fresh()}
        role = "write" if MASTERS in groups else roles.get(name, "")
        return User(name, role, groups, uid, extra or {})


def _of(digest: bytes, users: list[tuple[bytes, User]]) -> User | None:
    """Compare every token, each in constant time."""
    found = None
    for known, user in users:
        if hmac.compare_digest(known, digest):
            found = user
    return found
