"""The key that signs sessions and links: made once, kept in the data directory."""

from __future__ import annotations

import secrets
from pathlib import Path

from dashboard.configuration.setting_values import MIN_SECRET_KEY
from leases.private_file import write_private

FILE_NAME = "secret_key"


class BadSecretKey(Exception):
    """The kept key cannot be used; the text says what to do and does not contain the key."""


def secret_key(data: Path) -> str:
    """The kept key; made on first need, readable by its owner alone. Raises BadSecretKey."""
    path = data / FILE_NAME
    try:
        if not path.exists():
            write_private(path, secrets.token_urlsafe(50).encode(), replace=False)
        key = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise _refusal(path, f"cannot be read ({str(reason).lower()})") from error
    if len(key) < MIN_SECRET_KEY:
        raise _refusal(path, f"holds fewer than {MIN_SECRET_KEY} characters")
    return key


def _refusal(path: Path, why: str) -> BadSecretKey:
    return BadSecretKey(
        f"The secret key {path} {why}: put a good copy in its place, or remove it; then a new one "
        "is made, and everybody signs in again."
    )
