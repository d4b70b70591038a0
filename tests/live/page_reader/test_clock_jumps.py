"""The wall clock is set: what a page learns of it that was drawn before, or by another process."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dashboard.live.drawn_rows import Drawings
from dashboard.live.messages import Show
from dashboard.live.page_reader import PageReader
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
