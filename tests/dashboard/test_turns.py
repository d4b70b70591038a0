"""Pages are made one by one, and after the watches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace

import pytest

from dashboard import turns
from dashboard.turns import page_turn

NOT_YET = 0.2  # seconds in which nothing happens


@pytest.fixture
def threads():
    with ThreadPoolExecutor() as pool:
        yield pool


def make_page(clusters, made, over):
    with page_turn(clusters):
        made.set()
        over.wait()


def test_a_second_page_begins_when_the_first_is_made(threads):
    first, second, over = Event(), Event(), Event()
    threads.submit(make_page, (), first, over)
    assert first.wait(10)
    last = threads.submit(make_page, (), second, over)
    assert not second.wait(NOT_YET)
    over.set()
    last.result(10)
    assert second.is_set()


def test_a_page_waits_until_what_has_arrived_was_followed(threads):
    late = [1.0]
    clusters = (SimpleNamespace(untold=lambda: 0.0), SimpleNamespace(untold=lambda: late[0]))
    made, over = Event(), Event()
    over.set()
    page = threads.submit(make_page, clusters, made, over)
    assert not made.wait(NOT_YET)
    late[0] = 0.0
    page.result(10)
    assert made.is_set()


def test_a_watch_that_stays_late_keeps_no_page_away(monkeypatch):
    monkeypatch.setattr(turns, "LONGEST", 0.05)
    made, over = Event(), Event()
    over.set()
    make_page((SimpleNamespace(untold=lambda: 60.0),), made, over)
    assert made.is_set()


def test_what_fails_lets_the_next_page_begin():
    with pytest.raises(ZeroDivisionError), page_turn(()):
        raise ZeroDivisionError
    with page_turn(()):
        pass
