"""Name a holder in a URL: whole, or by its digest if the URL would be too long."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from dashboard.parts.query.url_parameters import MAX_TEXT
from leases.domain.holder_identity import split_holder

_DIGEST = "sha256:"
_PART = 200  # characters that are enough to find a holder


def holder_parameter(name: str) -> str:
    """The value of `?holder=` for this identity or host."""
    return name if _bearable(name) else _digest(name)


def part_of(name: str) -> str:
    """The value of `?q=` that finds this identity or host: all of it, or its beginning."""
    return name.split("\0")[0][:_PART].strip()


def is_held_by(wanted: str) -> Callable[[str], bool]:
    """A test whether an identity, or the host in it, is the one of `?holder=`."""
    if wanted.startswith(_DIGEST):
        return lambda identity: any(
            not _bearable(name) and _digest(name) == wanted for name in _names(identity)
        )
    return lambda identity: wanted in identity and wanted in _names(identity)


def _names(identity: str) -> tuple[str, ...]:
    host = split_holder(identity).host
    return (identity,) if host is None else (identity, host)


def _bearable(name: str) -> bool:
    return len(name) <= MAX_TEXT and "\0" not in name and name == name.strip()


def _digest(name: str) -> str:
    return _DIGEST + hashlib.sha256(name.encode()).hexdigest()
