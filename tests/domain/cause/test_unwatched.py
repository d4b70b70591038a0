"""What happened while nobody watched: one incident, and no cause without a dated witness."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

import pytest
from msgspec.structs import replace

from leases.domain.cause import casebook, node_groups
from leases.domain.cause.facts import EventFact, Fact, NodeFact, PodFact, Question, RefusedSource
from leases.domain.change import ChangeType, identity
from leases.domain.figures import watched_gap
from leases.domain.incident import Cause, Confidence, Incident, Source, Standing
from leases.domain.phase import samples
from leases.wire.watch_decoding import Applied, Arrived, Deleted, Replayed
from tests.support.pauses import ELECTIONS, NODES, Board, Cluster, Holder, pod, watching
from tests.support.values.leases import after

DAY = 26 * 3600.0
OFF = {Cause.API_OUTAGE, Cause.UNWATCHED}


def across(board: Board, since: float) -> list[Incident]:
    """The incidents that have a change from then on."""
    assert board.losses(since)
    return [one for one in board.incidents if one.ended is None or one.ended >= after(since)]


def restarted(pause: float, *, hosted: bool, stop: float = 60.0) -> Board:
    """A board and its whole cluster stop for so long, and start again."""
    board = stopped_for(pause, hosted=hosted, stop=stop)
    board.until(stop + pause + 200)
    board.stop()
    return board


def stopped_for(pause: float, *, hosted: bool = True, stop: float = 60.0) -> Board:
    cluster = Cluster()
    before = watching(cluster, stop, hosted=hosted)
    before.stop()
    cluster.off()
    board = Board(cluster, stop + pause, hosted=hosted, earlier=before)
    board.connect()
    cluster.back(stop + pause)
    return board


@pytest.mark.parametrize(
    ("lasted", "words"), [(600, "nobody wrote any Lease"), (60, "hardly anybody wrote a Lease")]
)
async def test_an_outage_says_whether_anybody_wrote(lasted: int, words: str) -> None:
    cluster = Cluster()
    board = watching(cluster, 60)
    cluster.off()
    board.cut()
    board.until(60 + lasted)
    cluster.version += 10
    cluster.back(board.now)
    board.connect()
    board.until(board.now + 180)
    board.stop()
    [outage] = [one for one in board.incidents if one.cause is Cause.API_OUTAGE]
    assert f": {words}; " in outage.sentence
    [moved] = [one.sentence for one in outage.evidence if "resourceVersion moved" in one.sentence]
    assert (" moved by 0 % " in moved) is ("nobody" in words)


@pytest.mark.parametrize("hosted", [True, False])
@pytest.mark.parametrize("pause", [3.0, 20.0, 100.0, 1200.0, DAY])
async def test_when_everything_was_off_it_is_one_incident(pause: float, *, hosted: bool) -> None:
    board = restarted(pause, hosted=hosted)
    (incident,) = across(board, 58)
    assert incident.cause in OFF
    assert incident.cause is Cause.API_OUTAGE or incident.confidence is Confidence.POSSIBLE
    losses = {one.namespace + "/" + one.name for one in board.losses(58)}
    assert {str(key) for key in incident.leases} == losses
    if pause > 40:
        assert len(incident.leases) == ELECTIONS + NODES
    assert len(incident.members) == len(board.losses(58))


async def test_leaseboard_and_its_api_say_that_they_were_stopped() -> None:
    (incident,) = across(restarted(1200.0, hosted=True), 58)
    assert incident.cause is Cause.API_OUTAGE
    assert incident.sentence == (
        "Leaseboard and its Lease API were stopped from 12:01:00 to 12:21:00; 32 Leases changed"
    )


@pytest.mark.parametrize("listed", [True, False])
async def test_a_kill_may_take_the_last_seconds_of_what_was_kept(*, listed: bool) -> None:
    """The Lease API keeps each write; how far history is follows it by some seconds."""
    cluster = Cluster()
    before = watching(cluster, 60, hosted=True)
    before.stop()
    lost = cluster.run(66)
    cluster.off()
    board = Board(cluster, 126, hosted=True, earlier=before)
    if not listed:
        for written in lost:
            board.tracker.handle(Replayed((Applied(written),)))
    board.connect(listed=listed)
    cluster.back(126)
    board.until(326)
    board.stop()
    (incident,) = across(board, 61)
    assert incident.cause is Cause.API_OUTAGE
    assert len(incident.leases) == ELECTIONS + NODES
    assert " were stopped from 12:01:06 to 12:02:06; " in incident.sentence


async def test_a_pause_of_a_day_names_the_days() -> None:
    (incident,) = across(restarted(DAY, hosted=True), 58)
    assert "from 2026-11-20 12:01:00 to 2026-11-21 14:01:00" in incident.sentence


async def test_an_outage_is_measured_by_the_renewals_that_are_missing() -> None:
    (incident,) = across(restarted(100.0, hosted=False), 58)
    assert incident.cause is Cause.API_OUTAGE
    assert incident.sentence.startswith(
        "The API server was gone for 1 min 40 s from about 12:01:00 on"
    )


def stood_still(seconds: float, *, hosted: bool) -> Board:
    cluster = Cluster()
    board = watching(cluster, 60, hosted=hosted)
    cluster.off()
    board.stands_still(seconds)
    cluster.back(board.now, takers=False)
    board.until(board.now + 200)
    board.stop()
    return board


@pytest.mark.parametrize("hosted", [True, False])
@pytest.mark.parametrize("seconds", [20.0, 61.0, 1200.0])
async def test_when_everything_stood_still_it_is_one_incident(
    seconds: float, *, hosted: bool
) -> None:
    board = stood_still(seconds, hosted=hosted)
    (incident,) = across(board, 58)
    assert incident.cause in OFF
    assert len(incident.members) == len(board.losses(58))
    if hosted:
        assert "Leaseboard and its Lease API stood still from 12:01:00 to " in incident.sentence


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("later", [0.0, 150.0])
async def test_a_second_board_that_watched_says_the_same(*, cut: bool, later: float) -> None:
    """The API and its holders are gone for 100 s; the holders may come back minutes later."""
    cluster = Cluster()
    board = watching(cluster, 60)
    cluster.off()
    if cut:
        board.until(60.5)
        board.cut()
    board.until(160)
    if cut:
        board.connect()
    board.until(160 + later)
    cluster.back(board.now)
    board.until(board.now + 200)
    board.stop()
    (incident,) = across(board, 58)
    assert incident.cause is Cause.API_OUTAGE
    assert len(incident.leases) == ELECTIONS + NODES
    assert len(incident.members) == len(board.losses(58))
    assert f"; {ELECTIONS + NODES} Leases changed" in incident.sentence


@pytest.mark.parametrize("goes_on", [False, True])
async def test_writes_after_the_last_try_that_failed_were_none_of_the_outage(
    *, goes_on: bool
) -> None:
    """A board comes back seconds after the API: meanwhile all write. Where it was our network, they
    wrote all the time.
    """
    cluster = Cluster()
    board = watching(cluster, 60)
    if not goes_on:
        cluster.off()
    for tried_at in (61, 65, 73, 83, 97):
        board.until(tried_at)
        board.cut()
    board.until(98)
    if goes_on:
        for index in range(ELECTIONS):
            cluster.move(index, pod(index, "z7xk"), 98.1 + index / 10)
    else:
        cluster.back(98)
    board.until(126)
    board.connect()
    board.until(300)
    board.stop()
    (incident,) = board.incidents
    assert incident.cause is (Cause.UNWATCHED if goes_on else Cause.API_OUTAGE)


@pytest.mark.parametrize("goes_on", [False, True])
async def test_a_watch_that_goes_on_counts_what_was_written_to_leases(*, goes_on: bool) -> None:
    """The version also moves with Pods and Events, which a starting cluster writes many of."""
    cluster = Cluster()
    board = watching(cluster, 60)
    if not goes_on:
        cluster.off()
    board.until(61)
    board.cut()
    written = []
    for seconds in range(62, 98):
        written += cluster.run(seconds)
    board.until(98)
    if not goes_on:
        cluster.back(99, takers=False)
        cluster.version += 400
        cluster.holders[-1].version = cluster.version
        written = [cluster.holders[-1].lease()]
    board.until(99)
    board.connect(listed=False)
    board.arrive(written)
    board.until(300)
    board.stop()
    assert {one.cause for one in board.incidents} == (set() if goes_on else {Cause.API_OUTAGE})
    (missed,) = [one for one in board.casebook.breaks if one.since >= after(60)]
    assert (missed.of_all, missed.went_on) == (not goes_on, goes_on)


def deleted_later(question: Question, now: datetime) -> Iterable[Fact]:
    """A controller moved on, seconds after its Lease was held again."""
    if question.source is Source.PODS:
        known = PodFact(
            key=question.key, read_at=now, uid="u", owner_kind="ReplicaSet", owner_name="app"
        )
        yield known if now < after(112) else replace(known, deleted_at=after(112))
    elif question.source is Source.EVENTS and now >= after(112):
        yield EventFact(
            kind="Pod", key=question.key, at=after(112), reason="Killing", message="Stopping"
        )


async def test_a_pod_that_is_stopped_later_did_not_lose_its_lease_in_an_outage() -> None:
    cluster = Cluster()
    cluster.holders[2].identity += "_66cd7b52-b41a-41ab-a2d9-bf4d8dbcd89c"  # of its process
    board = Board(cluster, 0.0, answers=deleted_later)
    board.connect()
    board.until(60)
    cluster.off()
    board.until(61)
    board.cut()
    board.until(100)
    board.until(100)
    cluster.back(100, takers=False)
    written, node = [], cluster.holders[ELECTIONS]
    for _ in range(400):  # others wrote so much that nothing shows an outage
        cluster.version += 1
        node.version = cluster.version
        written.append(node.lease())
    board.connect(listed=False)
    board.arrive(written)
    board.until(112)
    planned_stop(board)
    take(board, 115)
    board.until(300)
    board.stop()
    unseen, stop = sorted(board.incidents, key=lambda told: told.began)
    assert (unseen.cause, unseen.began < after(101)) == (Cause.UNWATCHED, True)
    assert (stop.cause, stop.began > after(111)) == (Cause.GRACEFUL_STOP, True)


async def test_a_pod_that_is_stopped_later_did_not_lose_its_lease_while_it_lived() -> None:
    cluster = Cluster()
    board = Board(cluster, 0.0, answers=deleted_later)
    board.connect()
    board.until(60)
    cluster.holders[2].silent = DAY
    board.until(79)
    cluster.move(2, pod(2, "z7xk"), 80)
    cluster.holders[2].silent = 0.0
    board.until(300)
    board.stop()
    (incident,) = board.incidents
    assert incident.cause not in (Cause.GRACEFUL_STOP, Cause.ROLLOUT, Cause.SCALED_DOWN)
    assert incident.began < after(80)


def no_pod(question: Question, now: datetime) -> Iterable[Fact]:
    if question.source is Source.PODS:
        yield PodFact(key=question.key, read_at=now, gone=True)


@pytest.mark.parametrize(("number", "takers"), [(2, False), (8, True)])
async def test_an_api_that_stands_still_after_a_burst_stopped_no_holder(
    number: int, *, takers: bool
) -> None:
    """Its holders wrote too quickly before it to have a rhythm, and it serves no Pods."""
    cluster = Cluster(elections=number, nodes=0)
    for one in cluster.holders:
        one.duration, one.every, one.next = 3, 0.1, 0.4
    board = Board(cluster, 0.0, answers=no_pod)
    board.connect()
    board.until(1.5)
    cluster.off()
    board.until(7.5)
    cluster.back(board.now, takers=takers)
    for one in cluster.holders:
        one.every = 2.0
    board.until(board.now + 130)
    board.stop()
    (incident,) = board.incidents
    assert (incident.cause, incident.confidence) == (Cause.API_OUTAGE, Confidence.POSSIBLE)
    assert len(incident.members) == len(board.losses(1)) > 0


def alone(answers=None, *, pause: float = 60.0) -> Board:  # type: ignore[no-untyped-def]
    """The board alone was stopped; the first two elections moved meanwhile."""
    cluster = Cluster()
    before = watching(cluster, 60)
    before.stop()
    now = 60.0
    while now < 60 + pause:
        now += 0.5
        cluster.run(now)
        if now == 80:
            for index in (0, 1):
                cluster.move(index, pod(index, "z7xk"), 98.0)
    board = Board(cluster, 60 + pause, earlier=before, answers=answers)
    board.connect()
    board.until(60 + pause + 200)
    board.stop()
    return board


async def test_a_board_that_was_stopped_alone_says_that_nobody_watched() -> None:
    (incident,) = across(alone(), 58)
    assert incident.cause is Cause.UNWATCHED
    assert incident.confidence is Confidence.POSSIBLE
    assert incident.sentence == (
        "Happened between 12:01:00 and 12:02:00, while nobody watched: app-0 and app-1"
    )
    assert {key.name for key in incident.leases} == {"app-0", "app-1"}


def died(question: Question, now: datetime) -> Iterable[Fact]:
    """The Pod of the first election ended at 12:01:20; nothing else is known."""
    if question.source is Source.PODS and question.key.name.startswith("app-0"):
        yield PodFact(
            key=question.key, read_at=now, uid="p", node="node-1", phase="Running", restarts=1,
            exit_reason="OOMKilled", exit_code=137, exited_at=after(80), started_at=after(81),
        )  # fmt: skip
        return
    yield RefusedSource(question.source, now, "forbidden", question.key.namespace)


async def test_a_dated_witness_keeps_its_cause() -> None:
    found = {one.cause: one for one in across(alone(died), 58)}
    assert set(found) == {Cause.OOM_KILLED, Cause.UNWATCHED}
    assert [key.name for key in found[Cause.OOM_KILLED].leases] == ["app-0"]
    assert [key.name for key in found[Cause.UNWATCHED].leases] == ["app-1"]


def stopped_then(question: Question, now: datetime) -> Iterable[Fact]:
    """The Pod of the first election was deleted at 12:01:21."""
    if question.source is Source.PODS and question.key.name.startswith("app-0-6bcjktn59v-q"):
        yield PodFact(
            key=question.key, read_at=now, uid="p", node="node-1", phase="Running",
            deleted_at=after(81),
        )  # fmt: skip
        return
    yield RefusedSource(question.source, now, "forbidden", question.key.namespace)


async def test_nobody_says_that_a_pod_did_not_release_what_a_list_skipped() -> None:
    found = {one.cause: one for one in across(alone(stopped_then), 58)}
    assert set(found) == {Cause.GRACEFUL_STOP, Cause.UNWATCHED}
    assert " was stopped and perhaps released team/app-0, " in found[Cause.GRACEFUL_STOP].sentence


async def test_what_happens_after_a_pause_has_its_own_cause() -> None:
    board = alone()
    cluster = board.cluster
    later = Board(cluster, board.now + 1, earlier=board)
    later.connect()
    later.until(board.now + 60)
    cluster.holders[3].silent = later.now + 1000
    later.until(later.now + 100)
    later.stop()
    last = max(later.incidents, key=lambda one: one.began)
    assert [key.name for key in last.leases] == ["app-3"]
    assert last.cause is Cause.CRASH


async def test_nothing_is_measured_across_a_pause() -> None:
    board = stood_still(11.0, hosted=False)  # nothing has run out
    assert [one.change for one in board.changes if one.change is ChangeType.EXPIRED] == []
    for index in range(ELECTIONS):
        assert max(clue_intervals(board, index)) <= 3.0
    assert not [late for update in board.updates for late in update.late]
    assert board.store.watched_since == after(71.5)


async def test_no_replayed_renewal_is_measured_from_one_before_the_pause() -> None:
    cluster = Cluster()
    before = watching(cluster, 60, hosted=True)
    before.stop()
    cluster.off()
    cluster.run(124)
    cluster.back(124, takers=False)
    board = Board(cluster, 126.5, earlier=before, hosted=True)
    for written in cluster.run(126.5):
        board.tracker.handle(Replayed((Applied(written),)))
    board.connect(listed=False)
    board.until(127)
    for index in range(ELECTIONS):
        assert max(clue_intervals(board, index)) <= 3.0
    board.stop()


def clue_intervals(board: Board, index: int) -> list[float]:
    return samples(board.of(index).intervals)


# Shortly before the pause, long before it; the process goes on after it, or starts anew.
@pytest.mark.parametrize(("silent", "since"), [(31.0, 62.0), (44.0, 62.0), (31.0, 200.0)])
@pytest.mark.parametrize("seconds", [16.0, 61.0])
@pytest.mark.parametrize("anew", [True, False])
async def test_a_gap_that_goes_on_through_a_pause_stays_one(
    silent: float, since: float, seconds: float, *, anew: bool
) -> None:
    """The pause neither ends it nor takes its end; it is no part of the time without a holder."""
    cluster = Cluster()
    board = watching(cluster, 30, hosted=True)
    cluster.holders[2].silent = silent + DAY
    board.until(since)
    cluster.off()
    if anew:
        board.stop()
        board = Board(cluster, since + seconds, hosted=True, earlier=board)
        board.connect()
    else:
        board.stands_still(seconds)
    resumed = board.now
    cluster.holders[2].silent = resumed + 6
    cluster.back(resumed, takers=False)
    board.until(resumed + 5)
    (before,) = [one for one in board.incidents if one.began < after(62)]
    assert (before.ended, before.cause) == (None, Cause.CRASH)
    board.until(resumed + 200)
    board.stop()
    (before,) = [one for one in board.incidents if one.began < after(62)]
    back = max(one.at for one in board.changes if one.name == "app-2")
    assert back >= after(resumed + 6)
    assert (before.ended, before.cause) == (back, Cause.CRASH)
    assert len(before.members) == 2
    watched = (back - before.began).total_seconds() - seconds
    assert before.worst_gap_seconds == pytest.approx(watched, abs=0.6)
    others = [one for one in board.incidents if one is not before]
    assert {one.cause for one in others} <= {Cause.API_OUTAGE}
    assert all("app-2" not in {key.name for key in one.leases} for one in others)


@pytest.mark.parametrize("anew", [True, False])
async def test_who_had_time_to_renew_after_an_outage_is_not_its_victim(*, anew: bool) -> None:
    cluster = Cluster()
    one = cluster.holders[2]
    one.duration, one.every = 240, 10.0
    board = watching(cluster, 60, hosted=True)
    renewed = one.renewed
    one.silent = DAY
    cluster.off()
    if anew:
        board.stop()
        board = Board(cluster, 80, hosted=True, earlier=board)
        board.connect()
    else:
        board.stands_still(20.0)
    cluster.back(board.now, takers=False)
    one.next = DAY
    board.until(renewed + 230)
    assert all("app-2" not in {key.name for key in told.leases} for told in board.incidents)
    board.until(500)
    (incident,) = [told for told in board.incidents if one.key in told.leases]
    assert incident.leases == (one.key,)
    assert after(renewed + 240) <= incident.began <= after(renewed + 241)
    assert (incident.cause, incident.confidence) == (Cause.UNWATCHED, Confidence.POSSIBLE)
    holder, began = one.identity, f"{incident.began:%H:%M:%S}"
    assert incident.sentence.startswith(f"{holder} fell silent between 12:01:00 and 12:01:20, ")
    assert incident.sentence.endswith(f"while nobody watched; team/app-2 ran out at {began}")
    outages = [told for told in board.incidents if told.cause is Cause.API_OUTAGE]
    assert all(told.ended is not None and told.ended < after(100) for told in outages)


async def test_a_pause_too_short_to_lose_a_lease_in_takes_nobody() -> None:
    """One holder died in it, and one shortly before; the others went on at once."""
    cluster = Cluster()
    board = watching(cluster, 52, hosted=True)
    early, late = cluster.holders[2:4]
    early.silent = DAY
    board.until(60)
    cluster.off()
    board.stands_still(5.0)
    cluster.back(board.now, takers=False)
    early.next = late.next = DAY
    board.until(69)
    cluster.move(2, pod(2, "z7xk"), 75.0)
    cluster.move(3, pod(3, "z7xk"), 78.0)
    board.until(250)
    board.stop()
    told = {one.leases[0].name: one for one in board.incidents}
    assert [len(one.leases) for one in board.incidents] == [1] * len(told)
    assert (told["app-2"].cause, told["app-2"].confidence) == (Cause.CRASH, Confidence.POSSIBLE)
    assert told["app-3"].cause is Cause.UNWATCHED


async def test_two_pauses_within_a_minute_are_two_incidents() -> None:
    board = stopped_for(20.0)
    board.until(110)
    board.cluster.off()
    board.stands_still(20.0)
    board.cluster.back(board.now, takers=False)
    board.until(board.now + 200)
    board.stop()
    stopped, stood = sorted(board.incidents, key=lambda one: one.began)
    assert "Leaseboard and its Lease API were stopped from 12:01:00 to " in stopped.sentence
    assert "Leaseboard and its Lease API stood still from 12:01:50 to " in stood.sentence
    for incident, since, until in ((stopped, 58, 110), (stood, 110, 400)):
        losses = [one for one in board.losses(since) if one.at < after(until)]
        assert len(incident.members) == len(losses) > 0


async def test_an_api_that_goes_again_at_once_was_gone_twice() -> None:
    cluster = Cluster()
    board = watching(cluster, 60)
    for since in (60, 100):
        board.until(since)
        cluster.off()
        board.cut()
        board.until(since + 20)
        cluster.back(board.now, takers=False)
        board.connect()
    board.until(300)
    board.stop()
    (incident,) = board.incidents
    assert incident.cause is Cause.API_OUTAGE
    assert incident.sentence.startswith("The API server was gone 2 times from about 12:01:00 on")
    assert len(incident.members) == len(board.losses(58))


async def test_nodes_that_fall_silent_together_while_others_go_on_did_not_die() -> None:
    cluster = Cluster()
    board = watching(cluster, 60)
    for i, one in enumerate(cluster.holders[ELECTIONS:-1]):  # one node goes on
        one.silent = 140.0 + i / 2  # they come back late, one after the other
    board.until(330)
    board.stop()
    (incident,) = across(board, 58)
    assert incident.cause is Cause.PARTITION
    assert len(incident.leases) == NODES - 1
    assert len(incident.members) == len(board.losses(58))
    assert incident.sentence.startswith("19 of 20 heartbeats stopped within ")


# While it may change, also after a time that nobody watched, and long after.
@pytest.mark.parametrize(("back_at", "cut"), [(140.0, None), (190.0, 160.0), (400.0, None)])
async def test_more_than_are_listed_are_counted(
    back_at: float, cut: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(casebook, "MAX_LISTED", 6)
    cluster = Cluster()
    board = watching(cluster, 60)
    for one in cluster.holders[ELECTIONS:-1]:
        one.silent = back_at
    board.until(130)
    (incident,) = board.incidents
    assert (incident.ended, incident.unlisted and incident.unlisted.without) == (None, 13)
    # The first six are listed; the others wait as well.
    ran_out = min(one.at for one in board.losses(58) if one.change is ChangeType.EXPIRED)
    assert incident.unheld_since == ran_out
    assert incident.worst_gap_seconds >= 30
    for one in cluster.holders[ELECTIONS : ELECTIONS + 6]:
        one.silent -= 20  # what is not listed comes back last
    if cut is not None:
        board.until(cut)
        board.cut()
        board.until(cut + 8)
        board.connect()
    board.until(back_at + 190)
    board.stop()
    (incident,) = across(board, 58)
    assert incident.sentence.startswith("19 of 20 heartbeats stopped within ")
    assert incident.sentence.endswith("; 6 of them are listed")
    assert incident.settled
    assert (len(incident.leases), incident.lease_count) == (6, NODES - 1)
    losses = board.losses(58)
    assert incident.change_count == len(losses) == 2 * (NODES - 1)
    assert incident.ended == max(one.at for one in losses)
    breaks = board.casebook.breaks
    assert bool(cut) == any(after(100) < one.since < after(200) for one in breaks)
    blind = node_groups.blind_times(breaks, after(board.now))
    assert incident.worst_gap_seconds == max(watched_gap(one, blind) or 0 for one in losses)
    listed = {one.identity for one in incident.members}
    assert incident.unlisted is not None
    assert all(
        identity(one) in listed or incident.unlisted.counts(one.kind, one.at) for one in losses
    )
    assert board.casebook._crowd.listed == 0  # those that run out next are listed again


async def test_a_board_that_starts_anew_goes_on_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(casebook, "MAX_LISTED", 6)
    cluster = Cluster()
    board = watching(cluster, 60)
    for one in cluster.holders[ELECTIONS:-1]:
        one.silent = 200.0
    board.until(150)
    again = Board(cluster, board.now, earlier=board)
    again.connect()
    again.until(400)
    again.stop()
    (incident,) = across(again, 58)
    assert incident.unlisted is not None
    assert (incident.unlisted.without, incident.change_count) == (0, 2 * (NODES - 1))
    assert incident.ended is not None


@pytest.mark.parametrize(("back_at", "cause"), [(None, Cause.SCALED_DOWN), (80.0, Cause.CRASH)])
async def test_a_pod_that_is_not_there_afterwards_is_no_witness_of_a_stop(
    back_at: float | None, cause: Cause
) -> None:
    """Nothing dated tells of it: whoever froze it may have had no Pod at all."""
    cluster = Cluster()
    board = Board(cluster, 0.0, answers=no_pod)
    board.connect()
    board.until(60)
    cluster.holders[3].silent = 10_000.0
    if back_at is not None:
        board.until(back_at)
        cluster.holders[3].silent = -1.0
        cluster.move(3, pod(3, "z7xk"), back_at)
    board.until(300)
    board.stop()
    (incident,) = board.incidents
    assert (incident.cause, incident.confidence) == (cause, Confidence.POSSIBLE)


async def test_a_process_that_dies_with_all_its_leases_is_one_incident() -> None:
    """No Pod can be read, and its identity is no Pod's."""
    cluster = Cluster()
    for one in cluster.holders[:ELECTIONS]:
        one.identity = "a-one"
    board = watching(cluster, 60)
    for one in cluster.holders[:ELECTIONS]:
        one.silent = 10_000.0
    board.until(300)
    board.stop()
    (incident,) = board.incidents
    assert incident.cause is Cause.CRASH
    assert len(incident.leases) == ELECTIONS
    assert incident.sentence.endswith("; 11 more of its Leases were lost with this one")


def flapping_board() -> Board:
    """At 71 s an election has been lost five times, each time to another Pod, and is held."""
    cluster = Cluster()
    board = watching(cluster, 60)
    for number, at in enumerate((61.0, 63.0, 65.0, 67.5, 70.0)):
        cluster.move(3, pod(3, f"w{number}bc"), at)
        board.until(at + 1)
    board.until(76)
    (incident,) = board.incidents
    assert (incident.cause, incident.ended) == (Cause.FLAPPING, None)
    return board


async def test_holders_that_nobody_placed_may_have_run_on_a_node_that_died() -> None:
    cluster = Cluster()
    board = watching(cluster, 60)
    for index in (2, 3, 4, ELECTIONS):
        cluster.holders[index].silent = DAY
    board.until(200)
    board.stop()
    (incident,) = board.incidents
    assert incident.cause is Cause.NODE_DOWN
    assert "; 3 elections that its pods may have held ran out within " in incident.sentence


async def test_pods_that_die_in_turn_flap_although_nobody_knows_them() -> None:
    """Each is another one, and none released: that is no rollout."""
    cluster = Cluster(elections=3, nodes=0)
    one = cluster.holders[0]
    one.duration, one.every = 3, 0.5
    board = Board(cluster, 0.0, answers=no_pod)
    board.connect()
    for number in range(8):
        board.until(board.now + 2)
        one.silent = board.now + 4
        board.until(board.now + 4)
        cluster.move(0, pod(0, f"w{number}bc"), board.now)
    board.until(board.now + 5)
    (incident,) = board.incidents
    assert incident.cause is Cause.FLAPPING
    assert len(incident.members) == 16
    board.stop()


def paused(before: Board, seconds: float, *, anew: bool, hosted: bool = False) -> Board:
    """Nobody watches for so long: our process stands still, or another one begins."""
    before.cluster.off()
    if not anew:
        before.stands_still(seconds)
        before.cluster.back(before.now, takers=False)
        return before
    before.stop()
    board = Board(before.cluster, before.now + seconds, earlier=before, hosted=hosted)
    before.cluster.back(board.now, takers=False)
    board.connect()
    return board


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("seconds", [61.0, 600.0])
async def test_what_flapped_before_a_pause_is_over_once_somebody_saw_it(
    seconds: float, *, anew: bool
) -> None:
    board = paused(flapping_board(), seconds, anew=anew)
    for at in (4, 60, 110):
        board.until(76 + seconds + at)
        (incident,) = [one for one in board.incidents if one.cause is Cause.FLAPPING]
        assert incident.ended is None
    board.until(board.now + 100)
    board.stop()
    (settled,) = [one for one in board.incidents if one.cause is Cause.FLAPPING]
    assert (settled.settled, settled.ended) == (True, after(70))
    assert settled.members == incident.members


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("stops", [1, 2])
async def test_what_flaps_on_after_a_pause_is_one_incident(stops: int, *, anew: bool) -> None:
    board = flapping_board()
    (begun,) = board.incidents
    for stop in range(stops):
        board = paused(board, 300.0, anew=anew)
        board.until(board.now + 20)
        for number in range(3):
            board.cluster.move(3, pod(3, f"{'xz'[stop]}{number}bc"), board.now + 1)
            board.until(board.now + 4)
    (incident,) = [one for one in board.incidents if one.cause is Cause.FLAPPING]
    assert (incident.id, incident.ended) == (begun.id, None)
    assert len(incident.members) == len(begun.members) + 3 * stops
    assert incident.members[: len(begun.members)] == begun.members
    assert incident.sentence.startswith(f"team/app-3 was lost {5 + 3 * stops} times within ")
    assert f" s, without {5 * stops} min that nobody watched, by app-3-" in incident.sentence
    within = incident.sentence.partition(" within ")[2].partition(" s,")[0]
    minutes, _, seconds = within.rpartition(" min ")
    watched = 60 * int(minutes or 0) + float(seconds)
    assert watched == pytest.approx(9 + 34 * stops, abs=2)
    board.until(board.now + 200)
    board.stop()
    (settled,) = [one for one in board.incidents if one.cause is Cause.FLAPPING]
    assert settled.settled
    assert settled.ended is not None
    assert settled.ended > after(76 + 300 * stops)


@pytest.mark.parametrize("anew", [True, False])
@pytest.mark.parametrize(("index", "silent"), [(2, 50.0), (ELECTIONS + 3, 25.0)])
async def test_who_fell_silent_before_a_pause_is_not_its_victim(
    index: int, silent: float, *, anew: bool
) -> None:
    """It missed renewals while somebody watched; only its time ran out in the pause."""
    cluster = Cluster()
    board = watching(cluster, silent, hosted=True)
    one = cluster.holders[index]
    one.silent = DAY
    board.until(60)
    cluster.off()
    if anew:
        board.stop()
        board = Board(cluster, 120, hosted=True, earlier=board)
        board.connect()
    else:
        board.stands_still(60.0)
    cluster.back(board.now, takers=False)
    one.next = DAY
    board.until(board.now + 200)
    board.stop()
    (incident,) = [told for told in board.incidents if one.key in told.leases]
    assert incident.leases == (one.key,)
    assert incident.cause in (Cause.CRASH, Cause.NODE_DOWN)
    others = [told for told in board.incidents if told is not incident]
    assert {told.cause for told in others} == {Cause.API_OUTAGE}


@pytest.mark.parametrize("anew", [True, False])
@pytest.mark.parametrize(("index", "silent"), [(2, 54.0), (8, 57.0), (ELECTIONS + 3, 34.0)])
async def test_who_fell_silent_before_a_pause_and_came_back_with_all_is_named_in_it(
    index: int, silent: float, *, anew: bool
) -> None:
    """Its time ran out in the pause: everything at once is one incident."""
    cluster = Cluster()
    board = watching(cluster, silent, hosted=True)
    one = cluster.holders[index]
    last, one.silent = one.renewed, DAY
    board.until(60)
    board = paused(board, 100, anew=anew, hosted=True)
    one.silent = board.now
    board.until(board.now + 200)
    board.stop()
    (incident,) = board.incidents
    assert (incident.cause, len(incident.leases)) == (Cause.API_OUTAGE, ELECTIONS + NODES)
    assert incident.sentence.endswith(f"; {one.key.name} had fallen silent before")
    (fact,) = [fact.sentence for fact in incident.evidence if one.key.name in fact.sentence]
    assert fact == f"{one.key.name} renewed last at {after(last):%H:%M:%S}, before that"


@pytest.mark.parametrize("seconds", [50.0, 100.0])
@pytest.mark.parametrize("hosted", [True, False])
async def test_whoever_is_not_back_long_after_the_others_is_told_alone(
    seconds: float, *, hosted: bool
) -> None:
    """The outage ends with those that came back; nobody saw whether this one died in it."""
    cluster = Cluster()
    board = watching(cluster, 58, hosted=hosted)
    one = cluster.holders[2]
    one.silent = DAY
    board.until(60)
    board = paused(board, seconds, anew=False, hosted=hosted)
    resumed = board.now
    board.until(resumed + 20)
    (outage,) = board.incidents
    assert (outage.cause, one.key in outage.leases) == (Cause.API_OUTAGE, True)
    board.until(resumed + 45)
    causes = sorted(one.cause for one in board.incidents)
    assert causes == [Cause.API_OUTAGE, Cause.UNWATCHED], "before anybody takes it"
    cluster.move(2, pod(2, "z7xk"), resumed + 47)
    one.silent = 0.0
    board.until(resumed + 300)
    board.stop()
    outage, away = sorted(board.incidents, key=lambda told: one.key in told.leases)
    assert (outage.cause, one.key in outage.leases) == (Cause.API_OUTAGE, False)
    assert outage.ended is not None
    assert outage.ended < after(resumed + 13)
    assert (away.cause, away.confidence) == (Cause.UNWATCHED, Confidence.POSSIBLE)
    assert away.sentence.startswith(f"{pod(2)} did not come back when the API server did; ")
    assert (away.leases, away.ended) == ((one.key,), after(resumed + 47))
    told = [member for each in board.incidents for member in each.members]
    assert len(told) == len(set(told)) == len(board.losses(60))


@pytest.mark.parametrize(("start", "lasts"), [(10, 15), (40, 60)])
async def test_what_runs_out_after_the_first_start_fell_silent_before_it(
    start: int, lasts: int
) -> None:
    cluster = Cluster()
    one, other = cluster.holders[2:4]
    one.duration = other.duration = lasts
    one.silent = DAY
    cluster.run(start)
    board = Board(cluster, start)
    board.connect()
    board.until(start + lasts + 30)
    (told,) = board.incidents
    (lost,) = board.losses(0)
    silent = f"{pod(2)} fell silent before {after(start):%H:%M:%S}, while nobody watched"
    assert told.cause is Cause.UNWATCHED
    assert told.sentence == f"{silent}; {one.key} ran out at {lost.at:%H:%M:%S}"
    board.stop()


async def test_several_that_run_out_after_the_first_start_did_not_before_it() -> None:
    cluster = Cluster()
    for one in cluster.holders[2:4]:
        one.silent, one.duration = DAY, 60
    cluster.run(40)
    board = Board(cluster, 40)
    board.connect()
    board.until(150)
    (told,) = board.incidents
    silent = f"fell silent before {after(40):%H:%M:%S}, while nobody watched"
    assert told.sentence.startswith(
        f"The holders of app-2 and app-3 {silent}; these 2 Leases were "
    )
    board.stop()


async def test_who_renewed_just_before_another_took_it_did_not_fall_silent() -> None:
    """The pause ends between the two."""
    cluster = Cluster()
    before = watching(cluster, 60)
    before.stop()
    cluster.run(99.5)
    board = Board(cluster, 100, earlier=before)
    board.connect()
    cluster.move(4, pod(4, "z7xk"), 100.5)
    board.until(150)
    board.stop()
    (told,) = board.incidents
    assert "fell silent" not in told.sentence
    assert "nobody watched" not in told.sentence


def not_ready(question: Question, now: datetime) -> list[NodeFact]:
    """A controller calls a Node so because its heartbeats are missing."""
    if question.source is not Source.NODES:
        return []
    return [NodeFact(name=question.key.name, read_at=now, ready="Unknown", ready_since=after(64))]


async def test_a_node_that_was_cut_off_before_a_pause_and_comes_back_after_it_is_named_in_it() -> (
    None
):
    cluster = Cluster()
    board = Board(cluster, 0.0, hosted=True, answers=not_ready)
    board.connect()
    board.until(34)
    one = cluster.holders[ELECTIONS + 3]
    one.silent = DAY
    board.until(60)
    board = paused(board, 100, anew=False, hosted=True)
    one.silent = board.now + 25
    board.until(board.now + 300)
    board.stop()
    (incident,) = board.incidents
    assert (incident.cause, len(incident.leases)) == (Cause.API_OUTAGE, ELECTIONS + NODES)
    assert incident.sentence.endswith(f"; {one.key.name} had fallen silent before")


async def test_where_all_fell_silent_just_before_a_pause_nobody_is_named() -> None:
    """What stopped them stopped us."""
    cluster = Cluster(nodes=0)
    board = watching(cluster, 55.5, hosted=True)
    cluster.off()
    board.until(60)
    board = paused(board, 100, anew=True, hosted=True)
    board.until(board.now + 200)
    board.stop()
    (incident,) = board.incidents
    assert incident.sentence.endswith(f"; {ELECTIONS} Leases changed")


async def test_who_fell_silent_in_a_pause_of_ours_and_ran_out_later_is_told_by_itself() -> None:
    """Others went on, and some were lost meanwhile."""
    cluster = Cluster()
    before = watching(cluster, 60)
    before.stop()
    node, quick = cluster.holders[ELECTIONS + 3], cluster.holders[2]
    cluster.run(62)
    quick.silent = DAY
    cluster.run(75)
    node.silent = DAY
    cluster.run(85)
    cluster.move(2, pod(2, "z7xk"), 86)
    quick.silent = 0.0
    cluster.run(100)
    board = Board(cluster, 100, earlier=before)
    board.connect()
    board.until(300)
    board.stop()
    meanwhile, later = sorted(board.incidents, key=lambda told: told.began)
    assert {meanwhile.cause, later.cause} == {Cause.UNWATCHED}
    assert meanwhile.leases == (quick.key,)
    assert later.leases == (node.key,)
    assert later.sentence.startswith(
        f"{node.identity} fell silent between 12:01:00 and 12:01:40, while nobody watched; "
    )


async def test_who_fell_silent_in_a_pause_of_ours_and_was_replaced_later_is_told_alone() -> None:
    cluster = Cluster()
    before = watching(cluster, 60)
    before.stop()
    late, quick = cluster.holders[4], cluster.holders[2]
    late.duration = 60
    cluster.run(70)
    quick.silent = late.silent = DAY
    cluster.run(80)
    cluster.move(2, pod(2, "z7xk"), 86)
    quick.silent = 0.0
    cluster.run(100)
    board = Board(cluster, 100, earlier=before)
    board.connect()
    board.until(120)
    cluster.move(4, pod(4, "z7xk"), 121)
    late.silent = 0.0
    board.until(300)
    board.stop()
    meanwhile, later = sorted(board.incidents, key=lambda told: told.began)
    assert (meanwhile.leases, later.leases) == ((quick.key,), (late.key,))
    assert later.sentence == (
        f"{pod(4)} fell silent between 12:01:00 and 12:01:40, while nobody watched; "
        f"team/app-4 went to {pod(4, 'z7xk')} at 12:02:01"
    )


@pytest.mark.parametrize("anew", [True, False])
async def test_an_api_server_that_others_wrote_to_was_not_gone(*, anew: bool) -> None:
    """Most holders were frozen while nobody watched, and some went on."""
    cluster = Cluster()
    board = watching(cluster, 60)
    if anew:
        board.stop()
    for index, one in enumerate(cluster.holders):
        one.silent = 100.0 if index % 4 else -1.0
    written = [one for at in range(61, 101) for one in cluster.run(float(at))]
    if anew:
        board = Board(cluster, 100, earlier=board)
        board.connect()
    else:
        board.stands_still(40.0)
        board.tracker.handle(Arrived(tuple(map(Applied, written))))
    board.until(300)
    board.stop()
    (incident,) = across(board, 61)
    assert incident.cause is Cause.UNWATCHED
    assert len(incident.leases) > 7


async def test_a_release_in_a_pause_is_witnessed_by_its_own_time() -> None:
    """Its holder wrote when it let go: that is no riddle, and planned."""
    cluster = Cluster()
    before = watching(cluster, 60)
    before.stop()
    one = cluster.holders[2]
    released = one.identity
    cluster.run(70)
    cluster.version += 1
    one.identity, one.renewed, one.duration, one.version = "", 71.0, 1, cluster.version
    gone = Applied(one.lease())
    one.duration = 15
    cluster.move(2, pod(2, "z7xk"), 72)
    cluster.run(75)
    board = Board(cluster, 80, earlier=before)
    for event in (gone, Applied(one.lease())):
        board.tracker.handle(Replayed((event,)))
    board.connect()
    board.until(board.now + 200)
    board.stop()
    (incident,) = [told for told in board.incidents if one.key in told.leases]
    assert (incident.cause, incident.standing) == (Cause.GRACEFUL_STOP, Standing.PLANNED)
    assert released in incident.sentence


async def test_who_renewed_once_more_while_nobody_watched_is_told_as_unwatched() -> None:
    cluster = Cluster()
    before = watching(cluster, 60)
    before.stop()
    cluster.holders[2].silent = 0.0
    cluster.run(64)
    cluster.holders[2].silent = DAY
    cluster.run(120)
    board = Board(cluster, 120, earlier=before)
    board.connect()
    board.until(300)
    board.stop()
    (incident,) = board.incidents
    assert (incident.cause, [key.name for key in incident.leases]) == (Cause.UNWATCHED, ["app-2"])


async def test_who_fell_silent_before_the_api_was_gone_is_not_its_victim() -> None:
    """Our watch was cut with it, and the Lease ran out meanwhile."""
    cluster = Cluster()
    board = watching(cluster, 52)
    one = cluster.holders[2]
    one.silent = DAY
    board.until(60)
    cluster.off()
    board.cut()
    board.until(80)
    board.connect()
    cluster.back(board.now, takers=False)
    one.next = DAY
    board.until(board.now + 200)
    board.stop()
    (incident,) = [told for told in board.incidents if one.key in told.leases]
    assert (incident.cause, incident.leases) == (Cause.CRASH, (one.key,))


async def test_who_stopped_after_the_api_was_back_is_not_its_victim() -> None:
    """We were back later than the API, and saw its last renewal in the list."""
    cluster = Cluster()
    board = watching(cluster, 60)
    cluster.off()
    board.cut()
    board.until(100)
    cluster.back(board.now)
    board.until(110)
    one = cluster.holders[2]
    assert one.renewed > 108
    one.next = DAY
    board.connect()
    board.until(board.now + 200)
    board.stop()
    last = max(board.incidents, key=lambda told: told.began)
    assert (last.cause, last.leases) == (Cause.CRASH, (one.key,))
    outages = [told for told in board.incidents if told.cause is Cause.API_OUTAGE]
    assert outages
    assert all(told.ended is not None and told.ended < after(112) for told in outages)


async def test_a_renewal_within_a_break_shows_that_the_api_was_back() -> None:
    """Our watch was back half a minute later; the holder did not live to see it."""
    cluster = Cluster()
    board = watching(cluster, 60)
    cluster.off()
    board.cut()
    board.until(160)
    cluster.back(board.now)
    node = cluster.holders[ELECTIONS]
    while node.renewed < 160:
        board.until(board.now + 0.5)
    node.next = DAY
    board.until(node.renewed + 25)
    board.connect()
    board.until(board.now + 200)
    board.stop()
    last = max(board.incidents, key=lambda told: told.began)
    assert (last.cause, last.leases) == (Cause.UNWATCHED, (node.key,))
    outages = [told for told in board.incidents if told.cause is Cause.API_OUTAGE]
    assert outages
    assert all("gone for 1 min 40 s from about 12:01:00 on" in told.sentence for told in outages)


@pytest.mark.parametrize("before", [10.0, 0.0])
async def test_a_stall_is_not_blamed_for_who_died_before_or_in_it(before: float) -> None:
    """Before it, its renewals were missing; after it, it had time for some."""
    cluster = Cluster()
    board = watching(cluster, 60 - before)
    one = cluster.holders[2]
    one.silent = DAY
    board.until(60)
    cluster.off()
    board.until(66)
    cluster.back(board.now, takers=False)
    one.next = DAY
    board.until(250)
    board.stop()
    (incident,) = board.incidents
    assert (incident.cause, incident.leases) == (Cause.CRASH, (one.key,))


def stalled(cluster: Cluster, board: Board, at: float) -> None:
    """For 4 s nobody who is alive can write."""
    board.until(at)
    cluster.off()
    board.until(at + 4)
    cluster.back(board.now, takers=False)


async def test_what_makes_others_a_little_late_loses_no_heartbeat() -> None:
    cluster = Cluster()
    board = watching(cluster, 60)
    node = cluster.holders[ELECTIONS]
    node.silent = DAY
    for at in (70, 84, 98):
        stalled(cluster, board, at)
        node.next = DAY
    board.until(300)
    board.stop()
    (incident,) = [one for one in board.incidents if node.key in one.leases]
    assert incident.cause is Cause.NODE_DOWN


async def test_a_silence_is_as_long_as_nobody_wrote_and_takes_no_crash_beside_it() -> None:
    cluster = Cluster()
    for one in cluster.holders[:2]:
        one.duration, one.every = 3, 1.0
    board = Board(cluster, 0.0, answers=no_pod)
    board.connect()
    board.until(80)
    crashed = cluster.holders[2]
    crashed.silent = DAY
    board.until(90)
    cluster.off()
    board.until(94)
    cluster.back(board.now, takers=False)
    crashed.next = DAY
    board.until(104)
    crashed.silent = 0.0
    cluster.move(2, pod(2, "z7xk"), 104.5)
    board.until(400)
    board.stop()
    short, crash = sorted(board.incidents, key=lambda told: told.began)
    assert [len(short.leases), crash.leases] == [2, (crashed.key,)]
    assert (short.cause, crash.cause) == (Cause.API_OUTAGE, Cause.CRASH)
    assert re.match("The API server was gone for [45](\\.[0-9])? s from", short.sentence)


async def test_a_slow_api_kills_nobody_for_memory() -> None:
    cluster = Cluster()
    board = Board(cluster, 0.0, answers=died)
    board.connect()
    for at in (66, 73, 80, 87):
        stalled(cluster, board, at)
        if at == 73:
            cluster.holders[0].silent = cluster.holders[0].next = DAY
        elif at > 73:
            cluster.holders[0].next = DAY
    board.until(120)
    cluster.holders[0].silent = 0.0
    cluster.move(0, pod(0, "z7xk"), 120.5)
    board.until(400)
    board.stop()
    (incident,) = [one for one in board.incidents if cluster.holders[0].key in one.leases]
    assert (incident.cause, incident.confidence) == (Cause.OOM_KILLED, Confidence.CERTAIN)


async def test_what_a_slow_api_lost_and_was_over_is_none_of_the_outage_after_it() -> None:
    cluster = Cluster()
    board = watching(cluster, 60)
    one = cluster.holders[2]
    one.silent = DAY
    for at in (60, 66, 72):
        stalled(cluster, board, at)
        one.next = DAY
    board.until(80)
    one.silent = 0.0
    cluster.move(2, pod(2, "z7xk"), 80.5)
    board.until(95)
    cluster.off()
    board.until(95.5)
    board.cut()
    board.until(160)
    cluster.back(160)
    board.connect()
    board.until(400)
    board.stop()
    slow, outage = sorted(board.incidents, key=lambda told: told.began)
    assert (slow.cause, slow.leases, slow.ended) == (Cause.API_SLOW, (one.key,), after(80.5))
    assert (outage.cause, outage.began > after(95)) == (Cause.API_OUTAGE, True)
    assert len(outage.leases) == ELECTIONS + NODES


@pytest.mark.parametrize("later", [15.0, 50.0])
async def test_who_renewed_after_a_stall_was_not_lost_in_it(later: float) -> None:
    cluster = Cluster()
    board = watching(cluster, 60)
    cluster.off()
    board.until(65)
    cluster.back(board.now, takers=False)
    board.until(65 + later)
    one = cluster.holders[2]
    one.next = DAY
    board.until(300)
    board.stop()
    (incident,) = board.incidents
    assert (incident.cause, incident.leases) == (Cause.CRASH, (one.key,))


def remade_unseen(*, how: str) -> tuple[Board, Incident]:
    """The board alone saw nothing from 60 s on: an election was deleted just before 64.2 s, and
    its holder made it again then.
    """
    cluster = Cluster()
    board = watching(cluster, 60)
    earlier = [Applied(one) for one in cluster.run(63)] if how != "cut briefly" else []
    if how == "stopped":
        board.stop()
        board = Board(cluster, 100, earlier=board)
        for event in (*earlier, *cluster.remake(2, 64.2)):
            board.tracker.handle(Replayed((event,)))
        cluster.run(100)
        board.connect()
    elif how == "stood still":
        board.stands_still(20.0)
        board.tracker.handle(Arrived((*earlier, *cluster.remake(2, 64.2))))
    else:
        board.until(63)
        board.cut()
        board.stands_still(1.5)
        board.connect(listed=False)
        board.tracker.handle(Arrived(cluster.remake(2, 64.2)))
    board.until(board.now + 200)
    board.stop()
    (incident,) = across(board, 61)
    assert incident.leases == (cluster.holders[2].key,)
    return board, incident


@pytest.mark.parametrize("how", ["stopped", "stood still", "cut briefly"])
async def test_a_deletion_that_nobody_watched_comes_before_the_lease_was_made_again(
    how: str,
) -> None:
    board, incident = remade_unseen(how=how)
    deleted, created = sorted(
        [one for one in board.changes if one.name == "app-2"][1:], key=lambda one: one.at
    )
    assert (deleted.change, created.change) == (ChangeType.DELETED, ChangeType.CREATED)
    assert after(62.3) <= deleted.at <= after(63.0)  # it was renewed, or heard of, then
    assert (deleted.inferred, deleted.inferred_since) == (True, deleted.at)
    assert (created.at, created.holder) == (after(64.2), deleted.previous_holder)
    passed = (created.at - deleted.at).total_seconds()
    assert created.gap_seconds == (None if how == "stopped" else passed)
    assert incident.began == deleted.at


@pytest.mark.parametrize("how", ["stopped", "stood still"])
async def test_who_made_a_lease_again_is_no_witness_of_its_deletion(how: str) -> None:
    _, incident = remade_unseen(how=how)
    assert (incident.cause, incident.confidence) == (Cause.UNWATCHED, Confidence.POSSIBLE)
    until = "12:01:40" if how == "stopped" else "12:01:20"
    assert incident.sentence == (
        f"Happened between 12:01:02 and {until}, while nobody watched: team/app-2"
    ), "it was renewed at 12:01:02"


async def test_a_deletion_in_a_brief_break_has_no_exact_time() -> None:
    _, incident = remade_unseen(how="cut briefly")
    assert (incident.cause, incident.confidence) == (Cause.BY_HAND, Confidence.LIKELY)
    assert incident.sentence == (
        f"team/app-2 was deleted between 12:01:03 and 12:01:04 while {pod(2)} held it, "
        f"and made again at most 1.2 s later by {pod(2)}"
    )


def identities(incident: Incident) -> set[str]:
    return {one.identity for one in incident.members}


def planned_stop(board: Board) -> str:
    """The holder of an election stops as it should; for now nobody else is there."""
    one = board.cluster.holders[2]
    loser, one.identity, one.duration = one.identity, "", 1
    one.next = board.now + 0.2
    board.until(board.now + 0.5)
    one.next = DAY
    return loser


def take(board: Board, at: float) -> None:
    one = board.cluster.holders[2]
    one.duration = 15
    board.cluster.move(2, pod(2, "z7xk"), at)


@pytest.mark.parametrize(
    ("ended_by", "seconds", "since", "taken"),
    [
        ("stop", 3.0, 48.0, 1), ("stop", 100.0, 48.0, 1), ("stop", 100.0, 10.0, 12),
        ("freeze", 100.0, 48.0, 1), ("freeze", 100.0, 10.0, 1),
        ("cut", 3.0, 48.0, 1), ("cut", 100.0, 48.0, 1), ("cut", 130.0, 48.0, 1),
    ],
)  # fmt: skip
async def test_an_outage_ends_what_waited_for_a_holder_before(
    ended_by: str, seconds: float, since: float, taken: float
) -> None:
    """Whoever would have come next could not: that is told by the outage, and no figure has it."""
    cluster = Cluster()
    hosted = ended_by != "cut"
    board = watching(cluster, since, hosted=hosted)
    planned_stop(board)
    board.until(60)
    cluster.off()
    back = 60 + seconds
    if ended_by == "stop":
        board.stop()
        board = Board(cluster, back, hosted=True, earlier=board)
        board.connect()
    elif ended_by == "freeze":
        board.stands_still(seconds)
    else:
        board.until(60.5)
        board.cut()
        board.until(back)
        board.connect()
    cluster.back(back, takers=False)
    take(board, back + taken)
    board.until(back + 200)
    board.stop()
    (stop,) = [one for one in board.incidents if one.began < after(59)]
    assert stop.standing is (Standing.PLANNED if since > 45 else Standing.OVERRAN)
    assert stop.cause in (Cause.GRACEFUL_STOP, Cause.SCALED_DOWN)
    assert stop.confidence is Confidence.POSSIBLE
    last = max((one for one in board.changes if one.name == "app-2"), key=lambda one: one.at)
    assert last.change is ChangeType.ACQUIRED
    assert stop.ended is not None
    assert after(58) <= stop.ended <= after(60.5)
    assert stop.sentence.endswith(
        f"; nobody had taken it when the API server went at {stop.ended:%H:%M:%S}"
    )
    (outage,) = [one for one in board.incidents if identity(last) in identities(one)]
    assert {one for one in board.incidents if outage is not one} == {stop}
    assert {*outage.causes.values()} == {Cause.API_OUTAGE}
    assert "; nobody held app-2 before" in outage.sentence
    assert stop.worst_gap_seconds == pytest.approx(60 - since, abs=2.5)
    assert across(board, 61) == [outage]


@pytest.mark.parametrize("anew", [True, False])
async def test_a_planned_stop_that_nobody_ends_after_an_outage_takes_too_long(
    *, anew: bool
) -> None:
    cluster = Cluster()
    board = watching(cluster, 55, hosted=True)
    planned_stop(board)
    board.until(60)
    cluster.off()
    if anew:
        board.stop()
        board = Board(cluster, 160, hosted=True, earlier=board)
        board.connect()
    else:
        board.stands_still(100)
    cluster.back(160, takers=False)
    cluster.holders[2].next = DAY
    board.until(166)
    (stop,) = [one for one in board.incidents if one.began < after(59)]
    assert (stop.standing, stop.ended) == (Standing.PLANNED, None)
    board.until(176)
    (stop,) = [one for one in board.incidents if one.began < after(59)]
    assert (stop.standing, stop.ended) == (Standing.OVERRAN, None)
    take(board, 190)
    board.until(400)
    board.stop()
    (stop,) = [one for one in board.incidents if one.began < after(59)]
    assert stop.standing is Standing.OVERRAN
    assert stop.ended == after(190)
    assert stop.worst_gap_seconds == pytest.approx(35, abs=1)


async def test_the_loss_before_a_deletion_that_nobody_watched_is_no_cause_of_it() -> None:
    cluster = Cluster()
    board = watching(cluster, 30)
    one = cluster.holders[2]
    one.silent = DAY
    board.until(60)
    board.stop()
    board = Board(cluster, 75, earlier=board)
    cluster.holders.remove(one)
    cluster.run(75)
    board.connect()
    board.until(board.now + 200)
    board.stop()
    (incident,) = [told for told in board.incidents if one.key in told.leases]
    deleted = next(told for told in board.changes if told.change is ChangeType.DELETED)
    causes = {member.identity: cause for member, cause in incident.causes.items()}
    assert incident.cause is Cause.CRASH
    assert (deleted.inferred, causes[identity(deleted)]) == (True, Cause.UNWATCHED)


async def test_evidence_of_what_nobody_watched_is_what_was_found_then() -> None:
    """The next holder comes before our eyes: that is another story."""
    cluster = Cluster()
    before = watching(cluster, 60)
    before.stop()
    one = cluster.holders[2]
    one.silent = DAY
    cluster.run(90)
    board = Board(cluster, 90, earlier=before)
    board.connect()
    board.until(100)
    one.silent = 0.0
    cluster.move(2, pod(2, "z7xk"), 110)
    board.until(300)
    board.stop()
    (incident,) = [told for told in board.incidents if one.key in told.leases]
    assert (incident.cause, len(incident.members)) == (Cause.UNWATCHED, 2)
    (fact,) = incident.evidence
    assert fact.sentence == "team/app-2: expired, without a holder, noticed at 12:01:31"


def two_let_go(board: Board) -> None:
    """One process lets go of two elections, and nobody else is there."""
    for one in board.cluster.holders[2:4]:
        one.identity, one.duration, one.next = "", 1, board.now + 0.2
    board.until(board.now + 0.5)
    for one in board.cluster.holders[2:4]:
        one.next = DAY


def sharing(until: float) -> Board:
    """A board of a cluster in which one Pod holds two elections."""
    cluster = Cluster()
    cluster.holders[3].identity = cluster.holders[2].identity
    return watching(cluster, until)


def gone(board: Board, one: Holder) -> Arrived:
    board.cluster.holders.remove(one)
    one.version = board.cluster.version = board.cluster.version + 1
    return Arrived((Deleted(one.lease()),))


@pytest.mark.parametrize("first", [True, False])
async def test_an_incident_is_over_once_all_its_leases_are_deleted(*, first: bool) -> None:
    """One of them before our eyes, the other while nobody watched."""
    board = sharing(30)
    seen, unseen = board.cluster.holders[2:4]
    two_let_go(board)
    board.until(200)
    if first:
        board.tracker.handle(gone(board, seen))
    board.until(201)
    board.stop()
    board.cluster.holders.remove(unseen)
    board.cluster.run(220)
    board = Board(board.cluster, 220, earlier=board)
    board.connect()
    board.until(260)
    if not first:
        board.tracker.handle(gone(board, seen))
    board.until(400)
    board.stop()
    (incident,) = [one for one in board.incidents if seen.key in one.leases]
    assert incident.leases == (seen.key, unseen.key)
    deleted = [one.at for one in board.changes if one.change is ChangeType.DELETED]
    assert (incident.ended, incident.unheld_since) == (max(deleted), None)


async def test_the_wait_of_each_lease_goes_on_after_a_restart() -> None:
    board = sharing(30)
    two_let_go(board)
    board.until(60)
    board.stop()
    taken, waits = board.cluster.holders[2:4]
    taken.duration = 15
    board.cluster.move(2, pod(2, "z7xk"), 70)
    board.cluster.run(80)
    board = Board(board.cluster, 80, earlier=board)
    board.connect()
    board.until(110)
    waits.duration = 15
    board.cluster.move(3, pod(3, "z7xk"), 110)
    board.until(300)
    board.stop()
    (incident,) = [one for one in board.incidents if waits.key in one.leases]
    assert incident.worst_gap_seconds == pytest.approx((60 - 30) + (110 - 80), abs=1.5)


async def test_after_a_restart_a_planned_stop_takes_as_long_as_its_lease_lasted() -> None:
    cluster = Cluster()
    cluster.holders[2].duration = 60
    board = watching(cluster, 30)
    planned_stop(board)
    board.until(40)
    board.stop()
    cluster.run(50)
    board = Board(cluster, 50, earlier=board)
    board.connect()
    for until, standing in ((98, Standing.PLANNED), (103, Standing.OVERRAN)):
        board.until(until)
        (stop,) = board.incidents
        assert (stop.standing, stop.ended) == (standing, None)
    board.stop()


async def test_a_deletion_by_others_leaves_the_loss_before_it_its_cause() -> None:
    cluster = Cluster()
    board = watching(cluster, 30)
    crashed, released = cluster.holders[2:4]
    crashed.silent = DAY
    released.identity, released.duration = "", 1
    board.until(46.5)
    released.next = DAY
    board.until(50)
    board.tracker.handle(gone(board, crashed))
    board.tracker.handle(gone(board, released))
    board.until(300)
    board.stop()
    found = {one.leases: one for one in board.incidents}
    assert found[crashed.key,].cause is Cause.CRASH
    assert found[released.key,].cause in (Cause.GRACEFUL_STOP, Cause.SCALED_DOWN)
    for one in found.values():
        assert one.causes[one.members[-1]] is Cause.DELETED
