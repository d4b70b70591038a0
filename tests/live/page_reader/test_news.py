"""Feed lines, changes and trouble elsewhere reach a page once."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from msgspec.structs import replace

from dashboard.feed import KEPT_CHANGES, MAX_NAMED
from dashboard.live import publisher
from dashboard.live.messages import Show
from dashboard.live.page_reader import PageReader
from dashboard.live.publisher import MAX_CHANGES_SENT, Publisher
from dashboard.live.shared_drawings import Drawings
from leases.domain.change import ChangeType, identity
from leases.domain.incident import Cause, Member
from leases.domain.lease import ObjectName
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.wire.watch_decoding import Deleted, Listed
from tests.live.page_reader.conftest import NOW, OTHER, write
from tests.support.board import KEY, a_lease
from tests.support.values.changes import a_change
from tests.support.values.incident_rows import incident_with
from tests.support.values.incidents import open_incident

CHANGE = a_change()


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
    frame = back.frame(NOW)
    (line,) = frame["feed"]
    assert re.search("cp-3", line)


def test_a_page_from_before_a_restart_has_to_reload(page, hub):
    hub.recent.append((hub.seq, CHANGE))
    for number in (hub.seq + 1000, hub.first_seq - 1000):
        page.show(Show({}, feed=number))
        frame = page.frame(NOW)
        assert frame["refetch"] is True
        assert "feed" not in frame


def test_a_page_that_missed_more_than_is_kept_has_to_reload(page, hub):
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


def test_trouble_is_counted_since_the_list_was_drawn_not_since_a_part_around_it(page, hub, store):
    third = ObjectName("kube-system", "third")
    store.replace(Listed(tuple(a_lease(key, now=NOW) for key in (KEY, OTHER, third)), "1"), NOW)
    shows = {"row": [str(KEY)]}
    listed = hub.moves.stamp
    page.show(Show(shows, query="", drawn=listed, listed=listed))
    page.frame(NOW)
    write(hub, seconds=1, version="2", key=OTHER, holder_identity=None)
    assert page.frame(NOW)["elsewhere"] == 1
    page.show(Show(shows, query="", drawn=hub.moves.stamp, listed=listed))
    write(hub, seconds=2, version="3", key=third, holder_identity=None)
    assert page.frame(NOW)["elsewhere"] == 2
    back = PageReader(hub, Drawings())
    back.show(Show(shows, query="", drawn=hub.moves.stamp, listed=listed))
    assert back.frame(NOW)["elsewhere"] == 2
    for number, key in enumerate((OTHER, third)):
        write(hub, seconds=3, version=f"{4 + number}", key=key)
    again = PageReader(hub, Drawings())
    again.show(Show(shows, query="", drawn=hub.moves.stamp, listed=listed))
    assert again.frame(NOW)["elsewhere"] == 0, "the page may still say 2"
    fresh = hub.moves.stamp
    page.show(Show(shows, query="", drawn=fresh, listed=fresh))
    write(hub, seconds=4, version="6", key=OTHER, holder_identity=None)
    assert page.frame(NOW)["elsewhere"] == 1, "the reader has accepted the others"


@pytest.mark.parametrize(
    ("query", "count"), [("?q=other", 1), ("?q=scheduler", None), (None, None)]
)
def test_on_a_page_without_rows_what_its_filter_wants_is_news(page, hub, query, count):
    page.show(Show({}, query=query))
    page.frame(NOW)
    write(hub, seconds=2, version="2", key=OTHER, holder_identity="cp-2")
    assert page.frame(NOW + timedelta(seconds=2)).get("elsewhere") == count


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


def test_a_page_fetches_what_a_list_found_of_a_known_lease_once_history_has_it(hub, page):
    waiting = [1]
    hub.unwritten = lambda: waiting[0]
    page.show(Show({}, feed=hub.seq))
    page.frame(NOW)
    later = NOW + timedelta(seconds=45)
    listed = (a_lease(holder="cp-2", version="6", now=later), a_lease(OTHER, now=NOW))
    update = hub.store.replace(Listed(listed, "6"), later)
    assert [change.change.value for change in update.changes]
    assert all(change.previous_holder for change in update.changes), "nothing is seen at first"
    hub.publish(update)
    assert page.frame(later)["refetch"], "what the store has"
    hub.tick(later)
    assert "refetch" not in (page.frame(later) or {})
    waiting[0] = 0
    hub.tick(later)
    assert page.frame(later)["refetch"], "what history has now"


def test_a_page_fetches_what_a_resumed_watch_found_once_history_has_it(hub, page):
    waiting = [1]
    hub.unwritten = lambda: waiting[0]
    page.show(Show({}, feed=hub.seq))
    page.frame(NOW)
    hub.publish(Update(cluster="a", now=NOW, seq=1, changes=(a_change(inferred=True),)))
    hub.tick(NOW)
    assert "refetch" not in page.frame(NOW)
    waiting[0] = 0
    hub.tick(NOW)
    assert page.frame(NOW)["refetch"]


def test_a_page_fetches_more_changes_than_frames_bring_once_history_has_them(hub, page):
    waiting = [1]
    hub.unwritten = lambda: waiting[0]
    page.show(Show({}, feed=hub.seq))
    page.frame(NOW)
    for first in (0, KEPT_CHANGES // 2 + 1):
        some = [a_change(first + number) for number in range(KEPT_CHANGES // 2 + 1)]
        hub.publish(Update(cluster="a", now=NOW, seq=1 + first, changes=tuple(some)))
        page.frame(NOW)
    hub.tick(NOW)
    assert "refetch" not in (page.frame(NOW) or {})
    waiting[0] = 0
    hub.tick(NOW)
    assert page.frame(NOW)["refetch"]


def test_a_page_fetches_more_causes_than_frames_bring(hub, page):
    changes = [
        a_change(number, name=f"lease-{number}", previous_holder="cp-1")
        for number in range(KEPT_CHANGES + 1)
    ]
    page.show(Show({}, feed=hub.seq))
    page.frame(NOW)
    hub.explainable.add(changes)
    for known, refetches in ((changes[:3], False), (changes[3:], False), (changes, True)):
        hub.incidents_moved([incident_with(*known, id=f"of-{len(known)}")])
        hub.tick(NOW)
        assert ("refetch" in page.frame(NOW)) is refetches


def test_what_the_first_list_of_a_cluster_found_is_not_kept_to_be_explained(hub):
    listed = {"change": ChangeType.CREATED, "inferred": True, "cluster": hub.store.cluster}
    found, run_out = (
        a_change(1, name="found", **listed),
        a_change(2, name="run-out", cluster=hub.store.cluster),
    )
    for first, explained in ((True, {"run-out"}), (False, {"found", "run-out"})):
        update = Update(
            cluster=hub.store.cluster, now=NOW, seq=1, changes=(found, run_out), first=first
        )
        hub.publish(update)
        known = hub.explainable.explain([incident_with(found, run_out)], hub.recent)
        assert {one.name for one in known} == explained


def publish(hub, seq, change):
    hub.seq = seq
    hub.recent.append((seq, change))


def test_a_table_gets_its_changes_as_rows_and_a_picture_only_their_numbers(hub, page):
    before = hub.seq
    page.show(Show(feed=before, feed_as="row"))
    page.frame(NOW)
    publish(hub, before + 1, CHANGE)
    (row,) = page.frame(NOW)["feed"]
    assert row.lstrip().startswith("<tr ")
    page.show(Show(feed=before, feed_as="number"))
    frame = page.frame(NOW)
    assert frame["numbers"] == [before + 1]
    assert "feed" not in frame


def test_a_page_learns_once_that_an_incident_began_changed_or_ended(page, hub):
    page.show(Show())
    assert "incidents" not in page.frame(NOW)
    hub.incidents_moved()
    assert page.wake.is_set()
    assert page.frame(NOW)["incidents"] is True
    assert "incidents" not in page.frame(NOW + timedelta(seconds=2))


def test_lines_whose_cause_became_known_are_drawn_again_once(page, hub):
    page.show(Show({}, feed=hub.seq))
    write(hub, seconds=1, version="2", holder_identity="cp-2")
    page.frame(NOW)
    change = hub.recent[-1][1]
    member = Member(KEY, identity(change))
    hub.incidents_moved([open_incident(KEY, cause=Cause.ROLLOUT, members=(member,))])
    (line,) = page.frame(NOW)["explained"]
    assert 'href="/c/a/incidents/5e1f/"' in line
    assert "rollout" in line
    assert hub.newest()[1][-1][1].incident == "5e1f"
    hub.incidents_moved([open_incident(KEY, cause=Cause.ROLLOUT, members=(member,))])
    assert "explained" not in page.frame(NOW)


def test_a_page_of_an_earlier_process_learns_the_causes_that_were_known_since():
    hubs = Publisher({"a": Store("a")})
    known = replace(CHANGE, cause=Cause.ROLLOUT, incident="5e1f")
    hubs.fill("a", [known, replace(CHANGE, holder="cp-9")])
    page = PageReader(hubs.hubs["a"], Drawings())
    page.show(Show({}, feed=1, drawn="1-1.0"))
    (line,) = page.frame(NOW)["explained"]
    assert "/incidents/5e1f/" in line
    assert "explained" not in page.frame(NOW + timedelta(seconds=2))
    fresh = PageReader(hubs.hubs["a"], Drawings())
    fresh.show(Show({}, feed=hubs.hubs["a"].seq, drawn=hubs.hubs["a"].moves.stamp))
    assert "explained" not in fresh.frame(NOW)
    member = Member(ObjectName(CHANGE.namespace, CHANGE.name), identity(CHANGE))
    hubs.hubs["a"].incidents_moved([open_incident(KEY, cause=Cause.CRASH, members=(member,))])
    (line,) = fresh.frame(NOW)["explained"]
    assert "crash" in line


def test_a_change_that_no_frame_brought_is_drawn_again_too(page, hub):
    """A page may have it from history."""
    page.show(Show({}, feed=hub.seq))
    many = tuple(
        replace(
            CHANGE, cluster="a", namespace=KEY.namespace, name=KEY.name, resource_version=str(n)
        )
        for n in range(MAX_CHANGES_SENT + 1)
    )
    hub.publish(Update(cluster="a", now=NOW, seq=1, changes=many))
    page.frame(NOW)
    member = Member(KEY, identity(many[-1]))
    hub.incidents_moved([open_incident(KEY, cause=Cause.ROLLOUT, members=(member,))])
    (line,) = page.frame(NOW)["explained"]
    assert "rollout" in line


def test_an_open_page_learns_that_nobody_looks_for_a_cause_any_more(page, hub):
    page.show(Show({}, feed=hub.seq))
    write(hub, seconds=1, version="2", holder_identity="cp-2")
    page.frame(NOW)
    member = Member(KEY, identity(hub.recent[-1][1]))
    sought = open_incident(KEY, cause=Cause.UNKNOWN, members=(member,), settled=False)
    hub.incidents_moved([sought])
    (line,) = page.frame(NOW + timedelta(seconds=3))["explained"]
    assert "not known yet" in line
    hub.incidents_moved([replace(sought, settled=True)])
    (line,) = page.frame(NOW + timedelta(seconds=125))["explained"]
    assert "cause not known" in line


def test_a_page_that_only_counts_changes_gets_no_lines_again(page, hub):
    page.show(Show({}, feed=hub.seq, feed_as="number"))
    write(hub, seconds=1, version="2", holder_identity="cp-2")
    member = Member(KEY, identity(hub.recent[-1][1]))
    hub.incidents_moved([open_incident(KEY, members=(member,))])
    assert "explained" not in page.frame(NOW)


@pytest.mark.parametrize(
    ("query", "moved", "made"),
    [
        ("", False, True),
        ("?namespace=kube-system", True, True),
        ("?namespace=other", False, False),
        ("?holder=cp-2", True, True),
        ("?sort=name", False, True),
    ],
)
def test_a_list_counts_again_what_may_count_in_it(page, hub, query, moved, made):
    """The numbers of a list without a filter follow all phases by themselves."""
    page.show(Show({}, query=query))

    def recounts() -> bool:
        return "recount" in (page.frame(NOW) or {})

    assert not recounts()
    write(hub, seconds=1, version="2", key=OTHER, holder_identity="cp-2")
    assert recounts() is moved
    write(hub, seconds=2, version="3", key=OTHER, holder_identity="cp-2")
    assert not recounts(), "only renewed"
    write(hub, seconds=3, version="4", key=ObjectName("kube-system", "new"))
    assert recounts() is made
    hub.publish(
        hub.store.follow(
            (Deleted(a_lease(OTHER, version="5", now=NOW)),), NOW + timedelta(seconds=4)
        )
    )
    assert recounts() is made


def test_a_list_counts_again_what_moved_since_it_was_drawn(hub):
    for query, counts in (("?namespace=kube-system", True), ("?namespace=other", False)):
        drawn = hub.moves.stamp
        write(hub, seconds=1, version=f"2{counts}", key=OTHER, holder_identity=f"cp-{counts}")
        late = PageReader(hub, Drawings())
        late.show(Show({}, query=query, drawn=drawn))
        assert late.frame(NOW).get("recount", False) is counts


def test_names_are_kept_of_what_is_few(hub, store):
    """A first list of 130,000 Leases would be named until 256 moves came after it."""
    names = [ObjectName("team", f"one-{number}") for number in range(MAX_NAMED + 3)]
    for number, named in ((2, True), (len(names), False)):
        before = hub.moves.stamp
        there = [a_lease(key, now=NOW) for key in (KEY, OTHER, *names[:number])]
        hub.publish(store.replace(Listed(tuple(there), f"{number}"), NOW))
        (move,) = hub.moves.since(before, None)
        assert (move.keys is not None) is named
        assert set(move.created) == (set(names[:2]) if named else set())
        assert {id(key) for key in move.created} <= {id(key) for key in move.keys or ()}
