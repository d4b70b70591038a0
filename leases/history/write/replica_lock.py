"""Replicas on one PostgreSQL take turns where two at once would collide.

SQLite lets one writer in at a time by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_SPACE = 0x1EA5E  # keeps our advisory locks apart from other programs' in the same database


def take_turn(name: str) -> None:
    """Wait for our turn at what is called so; it lasts as long as the open transaction."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_SPACE, name])


@contextmanager
def turn(name: str) -> Iterator[None]:
    """Our turn for the length of the block, over any number of transactions."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", [_SPACE, name])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", [_SPACE, name])
