"""Pages are drawn one by one, and after the watches; what only waits holds up no other page."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest
from django.db import connection

from dashboard.access import drawing_gate as module
from dashboard.access.drawing_gate import (
    LATE,
    LOOK,
    MAX_BEGUN,
    MAX_LARGE,
    MAX_WAIT,
    PageGate,
    drawing_gate,
)
from dashboard.parts.answer_cache import AnswerCache
from dashboard.parts.page_context import PageTemplate
from tests.support.board import a_lease, fill
from tests.support.page_paths import PATHS

pytestmark = pytest.mark.django_db

NOT_YET = 0.2  # seconds in which nothing happens
SOON = 30.0  # seconds after which something that should happen never does


class Clock:
    """A clock that only sleeping moves, and a watch that is late by it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.late_until = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def unprocessed_seconds(self) -> float:
        return 2 * LATE if self.now < self.late_until else 0.0


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def gate(clock):
    return PageGate(clock=clock, sleep=clock.sleep)


@pytest.fixture
def threads():
    with ThreadPoolExecutor() as pool:
        yield pool


def wait_until(condition):
    ends = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.005)


def make_page(gate, made, over):
    try:
        with gate.drawing(()):
            made.set()
            assert over.wait(SOON)
    finally:
        connection.close()


def test_a_second_page_begins_when_the_first_is_made(gate, threads):
    first, second, over = Event(), Event(), Event()
    threads.submit(make_page, gate, first, over)
    assert first.wait(SOON)
    last = threads.submit(make_page, gate, second, over)
    assert not second.wait(NOT_YET)
    over.set()
    last.result(SOON)
    assert second.is_set()


@pytest.mark.parametrize("of_database", [True, False])
def test_a_page_that_has_begun_goes_on_before_another_begins(of_database, gate, threads):
    """Also when the other came first."""
    asks, answered, held, over, order = Event(), Event(), Event(), Event(), []

    def wait(run=lambda: None, *what):
        asks.set()
        assert answered.wait(SOON)
        return run(*what)

    def asking():
        try:
            with gate.drawing(()):
                if of_database:
                    with connection.execute_wrapper(wait), connection.cursor() as cursor:
                        cursor.execute("SELECT 1")
                else:
                    with gate.waiting():
                        wait()
                order.append("goes on")
        finally:
            connection.close()

    def beginning():
        try:
            with gate.drawing(()):
                order.append("begins")
        finally:
            connection.close()

    pages = [threads.submit(asking)]
    assert asks.wait(SOON)
    pages.append(threads.submit(make_page, gate, held, over))
    assert held.wait(SOON)
    pages.append(threads.submit(beginning))
    wait_until(lambda: gate._drawing._to_begin._waiters)
    answered.set()
    wait_until(lambda: gate._drawing._to_go_on._waiters)
    over.set()
    for page in pages:
        page.result(SOON)
    assert order == ["goes on", "begins"]


def test_many_pages_take_turns_and_none_is_forgotten(gate, threads):
    inside, most, over = [], [], Event()
    over.set()

    def page():
        try:
            with gate.drawing(()):
                for _ in range(30):
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
                    with gate.waiting():
                        pass
        finally:
            connection.close()

    for made in [threads.submit(page) for _ in range(20)]:
        made.result(SOON)
    assert len(most) == 600
    assert max(most) == 1
    assert not gate._drawing.locked()


def test_a_page_waits_until_what_has_arrived_was_followed(gate, clock):
    clock.late_until = clock.now + 1.0
    with gate.drawing((Clock(), clock)):
        assert 1001.0 <= clock.now < 1001.0 + 2 * LOOK


def test_all_pages_together_wait_once_for_a_watch_that_stays_late(gate, clock):
    clock.late_until = float("inf")
    for _ in range(200):
        with gate.drawing((clock,)):
            pass
    assert MAX_WAIT <= clock.now - 1000.0 < MAX_WAIT + 2 * LOOK


def test_pages_that_come_side_by_side_wait_together(gate, clock, threads):
    clock.late_until = float("inf")
    over = Event()
    over.set()

    def page():
        try:
            with gate.drawing((clock,)):
                pass
        finally:
            connection.close()

    for made in [threads.submit(page) for _ in range(20)]:
        made.result(SOON)
    # Each thread's last sleep may end after the wait is over.
    assert MAX_WAIT <= clock.now - 1000.0 < MAX_WAIT + 21 * LOOK


def test_a_late_watch_gets_as_much_time_as_the_page_before_it_took(gate, clock):
    clock.late_until = float("inf")
    with gate.drawing((clock,)):
        clock.now += 0.05
    before = clock.now
    with gate.drawing((clock,)):
        assert clock.now == pytest.approx(before + 0.05)


def test_a_watch_that_is_late_again_is_waited_for_again(gate, clock):
    clock.late_until = clock.now + 10.0
    with gate.drawing((clock,)):
        clock.now += 20.0
    with gate.drawing((clock,)):
        pass
    clock.now += 2 * LOOK
    again, clock.late_until = clock.now, clock.now + 1.0
    with gate.drawing((clock,)):
        assert clock.now >= again + 1.0


def make_waiting_page(gate, made, over):
    try:
        with gate.drawing(()), gate.waiting():
            made.set()
            assert over.wait(SOON)
    finally:
        connection.close()


def test_few_pages_have_begun_at_a_time(gate, threads):
    made, over = [Event() for _ in range(MAX_BEGUN + 1)], Event()
    pages = [threads.submit(make_waiting_page, gate, one, over) for one in made[:-1]]
    for one in made[:-1]:
        assert one.wait(SOON)
    pages.append(threads.submit(make_waiting_page, gate, made[-1], over))
    assert not made[-1].wait(NOT_YET)
    over.set()
    for page in pages:
        page.result(SOON)
    assert made[-1].is_set()


def test_a_page_begins_in_the_end_though_others_hang(gate, threads, monkeypatch):
    monkeypatch.setattr(module, "BEGIN_WITHIN", NOT_YET)
    made, over = [Event() for _ in range(MAX_BEGUN + 1)], Event()
    pages = [threads.submit(make_waiting_page, gate, one, over) for one in made]
    assert all(one.wait(SOON) for one in made)
    over.set()
    for page in pages:
        page.result(SOON)
    for _ in range(MAX_BEGUN):
        assert gate._begun.acquire(blocking=False)
    assert not gate._begun.acquire(blocking=False)  # it gave no room back that it did not have


def make_large_page(gate, made, over):
    try:
        with gate.drawing(()), gate.large():
            made.set()
            with gate.waiting():
                assert over.wait(SOON)
    finally:
        connection.close()


def test_few_large_pages_are_under_way_and_others_are_drawn_meanwhile(gate, threads):
    made, over, small_over = [Event() for _ in range(MAX_LARGE + 1)], Event(), Event()
    pages = [threads.submit(make_large_page, gate, one, over) for one in made[:-1]]
    for one in made[:-1]:
        assert one.wait(SOON)
    last, small = threads.submit(make_large_page, gate, made[-1], over), Event()
    small_over.set()
    threads.submit(make_page, gate, small, small_over).result(SOON)
    assert not made[-1].wait(NOT_YET)
    over.set()
    for page in (*pages, last):
        page.result(SOON)
    assert made[-1].is_set()


def test_a_large_page_is_drawn_in_the_end_though_others_hang(gate, threads, monkeypatch):
    monkeypatch.setattr(module, "LARGE_WITHIN", NOT_YET)
    made, over = [Event() for _ in range(MAX_LARGE + 1)], Event()
    pages = [threads.submit(make_large_page, gate, one, over) for one in made]
    assert all(one.wait(SOON) for one in made)
    over.set()
    for page in pages:
        page.result(SOON)
    with gate.large(), gate.large():  # it gave no room back that it did not have
        assert not gate._large.acquire(blocking=False)


def test_a_failing_page_lets_the_next_begin(gate):
    with pytest.raises(ZeroDivisionError), gate.drawing(()):
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), gate.drawing(()), gate.waiting():
        raise ZeroDivisionError
    with gate.drawing(()):
        pass


def test_another_page_is_drawn_while_rows_are_fetched(gate, threads):
    """SQLite looks for all rows but the first only then."""
    looking, go = Event(), Event()

    def slow(number):
        if number == 2:
            looking.set()
            go.wait(SOON)
        return number

    def page():
        try:
            with gate.drawing(()), connection.cursor() as cursor:
                connection.connection.create_function("slow", 1, slow)
                cursor.execute("SELECT slow(1) UNION ALL SELECT slow(2)")
                return cursor.fetchall()
        finally:
            connection.close()

    found = threads.submit(page)
    assert looking.wait(SOON)
    made = Event()
    threads.submit(make_page, gate, made, go)
    try:
        assert made.wait(SOON)
    finally:
        go.set()
    assert found.result(SOON) == [(1,), (2,)]


def test_two_pages_that_want_the_same_value_wait_for_each_other_without_end_of_neither(threads):
    kept: AnswerCache[int] = AnswerCache()
    making, asked, go = Event(), Event(), Event()

    def make():
        with drawing_gate.waiting():
            making.set()
            assert go.wait(SOON)
        return 7

    def page(before):
        try:
            with drawing_gate.drawing(()):
                before.set()
                return kept.get("value", make)
        finally:
            connection.close()

    first = threads.submit(page, Event())
    assert making.wait(SOON)
    second = threads.submit(page, asked)
    assert asked.wait(SOON)
    go.set()
    assert (first.result(SOON), second.result(SOON)) == (7, 7)


@pytest.mark.parametrize("path", ["/c/a/", "/c/a/wall/"])
def test_a_page_is_drawn_inside_the_gate(path, board, operator, monkeypatch):
    inside = []
    monkeypatch.setattr(board, "problem", lambda *_: inside.append(drawing_gate._drawing.locked()))
    assert operator.get(path).status_code == 200
    assert inside
    assert all(inside)


@pytest.mark.parametrize("path", ["/c/a/", "/c/a/wall/"])
def test_a_page_looks_whether_any_watch_is_late(path, board, operator, monkeypatch):
    monkeypatch.setattr(drawing_gate, "_punctual_at", float("-inf"))
    looks = []
    board.clusters["b"].unprocessed_seconds = lambda: looks.append(path) or 0.0
    assert operator.get(path).status_code == 200
    assert looks


@pytest.mark.parametrize("path", [*PATHS, "/c/a/history/?holder=cp-1", "/c/a/nodes/"])
def test_no_page_keeps_others_out_while_it_asks_the_database(path, board, admin):
    fill(board.clusters["a"].store, a_lease())
    asked = []
    connection.ensure_connection()
    connection.connection.set_trace_callback(
        lambda sql: asked.append((sql, drawing_gate._drawing.locked()))
    )
    try:
        admin.get(path)
    finally:
        connection.connection.set_trace_callback(None)
    assert asked
    assert [sql for sql, kept_out in asked if kept_out] == []


OTHERS = ("/c/a/nodes/", "/c/a/leases/?q=format=json", "/history/", "/search/?q=a")


@pytest.mark.parametrize("path", [*PATHS, *OTHERS])
def test_no_page_lets_the_gate_go_in_the_middle_of_its_template(path, board, admin, monkeypatch):
    """As many pages as there are threads would wait there, each with all that it computed."""
    fill(board.clusters["a"].store, a_lease())
    asked: list[str] = []
    render = PageTemplate.render

    def drawn(*given: object, **named: object) -> str:
        if not drawing_gate._drawing.locked():  # a page of the few who manage people and settings
            return render(*given, **named)
        with connection.execute_wrapper(lambda run, *what: asked.append(what[0]) or run(*what)):
            return render(*given, **named)

    monkeypatch.setattr(PageTemplate, "render", drawn)
    admin.get(path)
    assert asked == []


@pytest.mark.parametrize("path", ["/c/a/timeline/", "/c/a/holders/"])
def test_a_page_of_many_lanes_is_large(path, board, operator, monkeypatch):
    drawn, large = [], drawing_gate.large

    @contextmanager
    def noted():
        with large():
            yield
        drawn.append(True)

    monkeypatch.setattr(drawing_gate, "large", noted)
    assert operator.get(path).status_code == 200
    assert drawn
