"""What a page is told: everything once, then differences; nothing lost, nothing repeated."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from dashboard.live import page_reader, publisher
from dashboard.live.messages import BadMessage, Show, read_show
from dashboard.live.page_reader import Drawings, PageReader
from dashboard.live.publisher import ClusterHub
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import Jump
from leases.tracking.store import Store
from leases.wire.watch_events import Applied, Deleted, Listed
from tests.support.board import KEY, a_lease
from tests.support.values.changes import a_change

NOW = datetime.now(UTC)
CHANGE = a_change()
OTHER = ObjectName("kube-system", "other")


@pytest.fixture
def store():
    one = Store("a")
    one.replace(Listed((a_lease(now=NOW), a_lease(OTHER, now=NOW)), "1"), NOW)
    return one


@pytest.fixture
def hub(store):
    return ClusterHub(store)


@pytest.fixture
def page(hub):
    one = PageReader(hub, Drawings())
    hub.pages.add(one)
    return one


def write(hub, *, seconds: float, version: str, key=KEY, **spec):
    lease = a_lease(key, version=version, now=NOW)
    renewed = lease.spec.renew_time + timedelta(seconds=seconds)
    lease = msgspec.structs.replace(
        lease, spec=msgspec.structs.replace(lease.spec, renew_time=renewed, **spec)
    )
    at = NOW + timedelta(seconds=seconds)
    update = hub.store.apply(Applied(lease), at)
    if update is not None:
        hub.publish(update)


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
    page.frame(NOW)
    beat = page.frame(NOW + timedelta(seconds=1))
    assert set(beat) == {"now", "seq", "connection"}


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


def test_a_lease_that_dies_is_gone_and_one_that_never_was_too(page, hub):
    page.show(Show({"row": [str(KEY), "x/y"]}))
    assert page.frame(NOW)["gone"] == ["x/y"]
    hub.publish(hub.store.apply(Deleted(a_lease(version="9", now=NOW)), NOW))
    assert page.frame(NOW)["gone"] == [str(KEY)]


def test_feed_lines_come_once_and_those_missed_while_away_come_too(page, hub):
    page.show(Show({}, feed=hub.seq))
    page.frame(NOW)
    write(hub, seconds=1, version="2", holder_identity="cp-2")
    assert len(page.frame(NOW)["feed"]) == 1
    had = hub.seq
    assert page.frame(NOW + timedelta(seconds=2)).get("feed") is None
    write(hub, seconds=3, version="3", holder_identity="cp-3")
    back = PageReader(hub, Drawings())
    back.show(Show({}, feed=had))
    (line,) = back.frame(NOW)["feed"]
    assert re.search("cp-3", line)


def test_a_page_from_before_a_restart_is_told_to_fetch_again(page, hub):
    hub.recent.append((hub.seq, CHANGE))
    for number in (hub.seq + 1000, hub.first_seq - 1000):
        page.show(Show({}, feed=number))
        frame = page.frame(NOW)
        assert frame["refetch"] is True
        assert "feed" not in frame


def test_a_page_that_missed_more_than_is_kept_is_told_to_fetch_again(page, hub):
    page.show(Show({}, feed=hub.seq))
    page.frame(NOW)
    for number in range(2, 60):
        write(hub, seconds=number, version=str(number), holder_identity=f"cp-{number}")
    assert page.frame(NOW)["refetch"] is True


def test_trouble_that_the_page_has_no_row_for_is_counted_until_it_is_over(page, hub):
    page.show(Show({"row": [str(KEY)]}, query="?kind=election"))
    page.frame(NOW)
    write(hub, seconds=2, version="2", key=OTHER, holder_identity="cp-2")
    assert "elsewhere" not in (page.frame(NOW) or {})
    hub.publish(hub.store.turn(NOW + timedelta(seconds=18)))
    assert page.frame(NOW)["elsewhere"] == 1
    write(hub, seconds=19, version="3", key=OTHER, holder_identity="cp-2")
    assert page.frame(NOW)["elsewhere"] == 0


@pytest.mark.parametrize(("query", "told"), [("?q=other", 1), ("?q=scheduler", None), (None, None)])
def test_on_a_page_without_rows_what_its_filter_wants_is_news(page, hub, query, told):
    page.show(Show({}, query=query))
    page.frame(NOW)
    write(hub, seconds=2, version="2", key=OTHER, holder_identity="cp-2")
    assert page.frame(NOW + timedelta(seconds=2)).get("elsewhere") == told


async def test_what_all_pages_share_is_drawn_once_and_sent_where_it_is_new(hub):
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
    assert set(again[0]) == {"kpis", "hours"}  # who holds is told by the rows themselves
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


def test_a_page_fetches_what_a_list_found_once_history_has_it(hub, page):
    waiting = [1]
    hub.unwritten = lambda: waiting[0]
    page.show(Show({}, feed=hub.seq))
    hub.publish(
        hub.store.replace(Listed((a_lease(ObjectName("default", "new"), version="6"),), "6"), NOW)
    )
    drawn_before = hub.seq
    page.frame(NOW)  # a list makes a page fetch at once: history is not written yet
    hub.tick(NOW)
    assert "refetch" not in (page.frame(NOW) or {})
    waiting[0] = 0
    hub.tick(NOW)
    assert page.frame(NOW)["refetch"]
    hub.tick(NOW)
    assert "refetch" not in (page.frame(NOW) or {})
    late = PageReader(hub, Drawings())  # drawn before, connected after
    late.show(Show({}, feed=drawn_before))
    assert late.frame(NOW)["refetch"]
    for _ in range(publisher.LATECOMERS):
        hub.tick(NOW)
    later = PageReader(hub, Drawings())
    later.show(Show({}, feed=hub.seq))
    assert "refetch" not in later.frame(NOW)


@pytest.mark.parametrize(
    "text", ["", "x", "[]", '{"show": 3}', '{"show": {"row": [1]}}', '{"feed": "x"}']
)
def test_a_message_of_another_shape_is_refused_with_a_sentence(text):
    with pytest.raises(BadMessage, match="A page says what it shows"):
        read_show(text)


def test_a_page_may_not_ask_for_more_than_a_page():
    names = [f"ns/{n}" for n in range(501)]
    with pytest.raises(BadMessage, match="500"):
        read_show(msgspec.json.encode({"show": {"row": names}}).decode())


def tell(hub, seq, change):
    hub.seq = seq
    hub.recent.append((seq, change))


def test_a_table_gets_its_changes_as_rows_and_a_picture_only_their_number(hub, page):
    before = hub.seq
    page.show(Show(feed=before, feed_as="row"))
    page.frame(NOW)
    tell(hub, before + 1, CHANGE)
    (row,) = page.frame(NOW)["feed"]
    assert row.lstrip().startswith("<tr ")
    page.show(Show(feed=before, feed_as="number"))
    frame = page.frame(NOW)
    assert frame["changes"] == 1
    assert "feed" not in frame


def test_a_page_that_wants_changes_in_an_unknown_form_is_refused():
    with pytest.raises(BadMessage, match="feed_as"):
        read_show('{"feed": 1, "feed_as": "poem"}')


@pytest.mark.parametrize(("open_pages", "ticks"), [(50, 1), (51, 2), (200, 4), (5000, 6)])
def test_each_of_many_pages_is_woken_once_in_so_many_ticks(hub, open_pages, ticks):
    pages = [PageReader(hub, Drawings()) for _ in range(open_pages)]
    hub.pages.update(pages)
    woken = []
    for _ in range(ticks):
        hub.tick(NOW)
        woken += [page.number for page in pages if page.wake.is_set()]
        for page in pages:
            page.wake.clear()
    assert sorted(woken) == [page.number for page in pages]


def wakes(page, hub, update) -> bool:
    page.wake.clear()
    hub.publish(update)
    return page.wake.is_set()


def test_a_page_is_woken_by_what_it_shows_and_by_nothing_else(page, hub):
    def change(version, **spec):
        lease = a_lease(version=version, now=NOW)
        spec = msgspec.structs.replace(lease.spec, **spec)
        return hub.store.apply(Applied(msgspec.structs.replace(lease, spec=spec)), NOW)

    page.show(Show({"row": [str(OTHER)]}))
    assert not wakes(page, hub, change("2", holder_identity="cp-2"))
    page.show(Show({"row": [str(KEY)]}))
    assert wakes(page, hub, change("3", holder_identity="cp-3"))
    page.show(Show({}, feed=hub.seq))
    assert wakes(page, hub, change("4", holder_identity="cp-4"))
    page.show(Show({}))
    assert not wakes(page, hub, change("5", holder_identity="cp-5"))
    listed = hub.store.replace(Listed((a_lease(version="6", now=NOW),), "6"), NOW)
    assert wakes(page, hub, listed)
    assert page.frame(NOW)["refetch"] is True
