"""A page gets everything once, then only differences: rows, numbers, key figures."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from dashboard.live import page_reader
from dashboard.live.messages import Show
from dashboard.live.page_reader import PageReader
from dashboard.live.shared_drawings import Drawings
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import Jump
from leases.wire.watch_decoding import Deleted
from tests.live.page_reader.conftest import NOW, OTHER, write
from tests.support.board import KEY, a_lease


def test_the_first_frame_draws_what_is_shown_and_the_next_is_silent(page):
    page.show(Show({"row": [str(KEY)]}))
    first = page.frame(NOW)
    assert list(first["html"]["row"]) == [str(KEY)]
    assert f'data-key="{KEY}"' in first["html"]["row"][str(KEY)]
    assert first["counts"]["total"] == 2
    assert page.frame(NOW) is None


def test_many_rows_come_a_few_a_frame_and_all_of_them_come(page, hub, monkeypatch):
    monkeypatch.setattr(page_reader, "MAX_DRAWN", 2)
    names = [ObjectName("default", f"lease-{number}") for number in range(5)]
    for name in names:
        write(hub, seconds=0, version="20", key=name)
    page.show(Show({"row": [str(name) for name in names]}))
    frames = []
    for version in range(22, 25):  # while the first two change again and again
        frames.append(page.frame(NOW))
        for name in names[:2]:
            write(hub, seconds=1, version=str(version), key=name, holder_identity=f"h{version}")
    assert [len(frame["html"]["row"]) for frame in frames] == [2, 2, 2]
    assert {key for frame in frames for key in frame["html"]["row"]} == set(map(str, names))
    assert page.wake.is_set()
    while not frames[-1].get("shown"):
        frames.append(page.frame(NOW))
    assert "h24" in frames[-1]["html"]["row"][str(names[1])]
    assert page.frame(NOW) is None


def test_a_quiet_page_still_hears_a_sign_of_life(page):
    page.show(Show())
    page.frame(NOW)
    beat = page.frame(NOW + timedelta(seconds=1))
    assert set(beat) == {"now", "seq", "drawn", "connection"}


@pytest.mark.parametrize("by", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_jump_of_the_clock_moves_what_the_page_shows_and_it_hears_on(page, hub, by):
    page.show(Show({"row": [str(KEY)]}))
    page.frame(NOW)
    hub.store.clock_jumped(Jump(NOW, NOW + by))
    hub.clock_jumped(Jump(NOW, NOW + by))
    assert page.wake.is_set()
    frame = page.frame(NOW + by)
    assert frame["moved"] == by.total_seconds()
    assert frame["refetch"]
    assert list(frame["html"]["row"]) == [str(KEY)]
    later = page.frame(NOW + by + timedelta(seconds=1.1))
    assert later is not None
    assert "moved" not in later


def test_a_renewal_is_numbers_and_a_new_holder_is_a_drawn_row(page, hub):
    page.show(Show({"row": [str(KEY)]}))
    page.frame(NOW)
    write(hub, seconds=2, version="2")
    frame = page.frame(NOW + timedelta(seconds=2))
    assert "html" not in frame
    assert frame["renewed"][str(KEY)][1] == 15
    write(hub, seconds=3, version="3", holder_identity="cp-2")
    frame = page.frame(NOW + timedelta(seconds=3))
    assert "cp-2" in frame["html"]["row"][str(KEY)]
    assert "renewed" not in frame


def test_key_figures_come_with_their_captions_where_they_are_shown(page, hub):
    page.show(Show({"row": [str(KEY)]}))
    assert "figures" not in page.frame(NOW)
    page.show(Show({}, groups=["overview"]))
    first = page.frame(NOW)["figures"]
    assert first["total"] == ("2", "2 elections", False)
    assert first["held"] == ("2", "100 %", False)
    write(hub, seconds=2, version="2", holder_identity=None)
    assert page.frame(NOW)["figures"] == {
        "held": ("1", "50 %", False),
        "vacant": ("1", "1 election", True),
    }


def test_many_renewals_between_two_frames_are_one(page, hub):
    page.show(Show({"row": [str(KEY)]}))
    page.frame(NOW)
    for number in range(2, 50):
        write(hub, seconds=number / 10, version=str(number))
    assert list(page.frame(NOW + timedelta(seconds=5))["renewed"]) == [str(KEY)]


def test_a_page_removes_rows_of_deleted_and_unknown_leases(page, hub):
    page.show(Show({"row": [str(KEY), "x/y"]}))
    assert page.frame(NOW)["gone"] == ["x/y"]
    hub.publish(hub.store.follow((Deleted(a_lease(version="9", now=NOW)),), NOW))
    later = page.frame(NOW + timedelta(seconds=7))
    assert later["gone"] == [str(KEY)]
    assert later["ends"] == {str(KEY): NOW.timestamp()}


async def test_shared_parts_are_drawn_once_and_sent_where_they_are_new(hub):
    pages = [PageReader(hub, Drawings()) for _ in range(3)]
    for one in pages:
        hub.pages.add(one)
        one.show(Show({}, groups=["overview", "nonsense"]))
        assert "regions" not in one.frame(NOW)
    first = await shared(hub, pages)
    assert set(first[0]) == {"kpis", "attention", "elections", "hours"}
    assert first[0] == first[1] == first[2]
    assert all("regions" not in (one.frame(NOW) or {}) for one in pages)
    write(hub, seconds=2, version="2", key=OTHER, holder_identity="cp-2")
    hub.shared.spacing = 0
    again = await shared(hub, pages)
    assert set(again[0]) == {"kpis", "hours"}  # the rows themselves show who holds
    hub.pages.clear()
    hub.tick(NOW)
    assert hub.shared.drawn == {}
    await hub.shared.stop()


async def shared(hub, pages):
    """What the pages are sent by the next drawing."""
    before = hub.shared.drawings
    hub.tick(NOW)
    while hub.shared.drawings == before:
        await asyncio.sleep(0.01)
    return [one.frame(NOW)["regions"] for one in pages]
