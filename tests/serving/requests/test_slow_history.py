"""A database that takes long to find changes holds up the page that asks, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest
from django.db import connection, connections
from django.db.backends.signals import connection_created

from dashboard.feed import KEPT_CHANGES
from tests.support.board import a_lease, browser_of, fill, member
from tests.support.values.changes import a_change

pytestmark = pytest.mark.django_db(transaction=True)

SOON = 60.0  # seconds after which a page that should answer never does
FAST = ("/c/a/", "/c/a/wall/", "/c/a/leases/", "/c/a/nodes/")


@contextmanager
def nobody_reads_changes() -> Iterator[Event]:
    """For the length of the block a statement that reads changes stays where it is; the event is
    set once one does.
    """
    blocked = Event()
    if connection.vendor == "postgresql":
        with lock_of_postgresql(blocked):
            yield blocked
        return
    go = Event()

    def wait(sql: str) -> None:
        if "leases_change" in sql:
            blocked.set()
            go.wait(SOON)

    def trace(connection, **_) -> None:
        connection.connection.set_trace_callback(wait)

    connection_created.connect(trace)
    try:
        yield blocked
    finally:
        go.set()
        connection_created.disconnect(trace)


@contextmanager
def lock_of_postgresql(blocked: Event) -> Iterator[None]:
    other = connections.create_connection("default")
    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor, ThreadPoolExecutor(1) as thread:
            cursor.execute("LOCK TABLE leases_change IN ACCESS EXCLUSIVE MODE")
            over = Event()
            looking = thread.submit(look_until, waits, blocked, over)
            try:
                yield
            finally:
                over.set()
                looking.result(SOON)
        other.rollback()
    finally:
        other.close()


def look_until(waits: str, blocked: Event, over: Event) -> None:
    """Tell when somebody waits for the lock."""
    try:
        with connection.cursor() as cursor:
            while not over.wait(0.02):
                cursor.execute(waits)
                if cursor.fetchone()[0]:
                    blocked.set()
    finally:
        connection.close()


@pytest.fixture
def page(board):
    """Asks for a page in a thread of its own, as the server does; its status."""
    fill(board.clusters["a"].store, a_lease())
    board.publisher.fill("a", [a_change(n) for n in range(KEPT_CHANGES)])
    browser = browser_of(member("olga", "operator"))

    def get(path: str) -> int:
        try:
            return browser.get(path).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor() as threads:
        yield lambda path: threads.submit(get, path)


def test_a_slow_history_holds_up_no_other_page(page):
    with nobody_reads_changes() as blocked:
        slow = page("/c/a/history/")
        assert blocked.wait(SOON)
        for path in FAST:
            assert page(path).result(SOON) == 200
        assert not slow.done()
    assert slow.result(SOON) == 200
