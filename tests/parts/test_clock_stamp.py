"""A part of a page says by which clock its moments are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from dashboard.parts.page_context import ClockStamp
from dashboard.serving.tasks.clock_watch import ClockWatch
from leases.domain.steady_clock import SteadyClock

HOUR = 3600 * 10**9


class Machine:
    """A wall clock that a test sets, and who follows it."""

    def __init__(self) -> None:
        self.time = HOUR
        self.watch = ClockWatch(SteadyClock(wall=lambda: self.time, passed=lambda: 0))

    def is_set(self) -> None:
        self.time += HOUR
        self.watch.look()


@pytest.fixture
def machine(board, monkeypatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(board, "clock", machine.watch)
    return machine


def stamp(draw: Callable[[], object] = lambda: None) -> str:
    """Of a part that `draw` draws."""

    def get_response(_: HttpRequest) -> HttpResponse:
        draw()
        return HttpResponse()

    request = RequestFactory().get("/", headers={"X-Regions": "facts"})
    return ClockStamp(get_response)(request).headers["X-Clock-Jumps"]


def test_a_part_counts_the_jumps_before_it(machine):
    assert stamp() == "0"
    machine.is_set()
    assert stamp() == "1"


def test_a_part_drawn_before_and_after_a_jump_fits_no_page(machine):
    assert stamp(machine.is_set) == "-1"
    assert stamp() == "1"


def test_a_part_drawn_while_the_moments_move_fits_no_page(machine):
    stamps: list[str] = []
    machine.watch.on_jump.append(lambda _: stamps.append(stamp()))
    machine.is_set()
    assert stamps == ["-1"]
