"""The wall clock is set: what a page learns of it that was drawn before, or by another process."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dashboard.live.messages import Show
from dashboard.live.page_reader import PageReader
from dashboard.live.shared_drawings import Drawings
from leases.domain.steady_clock import Jump
from tests.live.page_reader.conftest import NOW

HOUR = timedelta(hours=1)


@pytest.fixture
def jumped(hub):
    """Its clock was set forward by an hour, and then by another."""
    hub.clock_jumped(Jump(NOW, NOW + HOUR))
    hub.clock_jumped(Jump(NOW, NOW + HOUR))
    return hub


@pytest.mark.parametrize(
    ("jumps", "moved"),
    [(0, 7200), (1, 3600), (7, 0)],
    ids=["drawn before", "lost its socket", "another process"],
)
def test_a_page_of_another_clock_is_moved_by_its_first_frame(jumped, jumps, moved):
    page = PageReader(jumped, Drawings())
    page.show(Show(jumps=jumps))
    frame = page.frame(NOW)
    assert (frame["moved"], frame["jumps"], frame["refetch"]) == (moved, 2, True)
    assert "moved" not in page.frame(NOW + timedelta(seconds=2))


def test_a_page_of_this_clock_stays(jumped):
    page = PageReader(jumped, Drawings())
    page.show(Show(jumps=2))
    assert {"moved", "refetch"}.isdisjoint(page.frame(NOW))


def test_a_message_that_crosses_a_frame_does_not_move_the_page_twice(hub):
    page = PageReader(hub, Drawings())
    page.show(Show(jumps=0))
    page.frame(NOW)
    hub.clock_jumped(Jump(NOW, NOW + HOUR))
    assert page.frame(NOW + HOUR)["moved"] == 3600
    page.show(Show(jumps=0))
    assert "moved" not in page.frame(NOW + HOUR)


def test_a_page_hears_nothing_until_it_said_by_which_clock_it_was_drawn(hub):
    page = PageReader(hub, Drawings())
    hub.clock_jumped(Jump(NOW, NOW + HOUR))
    assert page.frame(NOW + HOUR) is None
    page.show(Show(jumps=0))
    assert page.frame(NOW + HOUR)["moved"] == 3600
