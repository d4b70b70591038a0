"""Locks between replicas on one PostgreSQL, where concurrent work would collide.

SQLite allows only one writer anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import Error, connection, transaction

_SPACE = 0x1EA5E  # separates our advisory locks from those of other programs


def take_turn(name: str) -> None:
    """Take the lock of this name until the open transaction ends."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_SPACE, name])


@contextmanager
def transaction_in_turn(name: str) -> Iterator[None]:
    """Open a transaction and take the lock of this name in it."""
    try:
        with transaction.atomic():
            take_turn(name)
            yield
    except Error:
        # Keep SQLite's open: on a full disk it could not be opened again.
        if not connection.is_usable():
            connection.close()
        raise


@contextmanager
def turn(name: str) -> Iterator[None]:
    """Hold the lock of this name during the block, over any number of transactions."""
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
