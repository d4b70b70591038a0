"""A Lease flaps, and everything stops: the loss across the pause belongs to the outage."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

import pytest
from msgspec.structs import replace

from leases.domain.cause import casebook
from leases.domain.cause.facts import EventFact, Fact, PodFact, Question
from leases.domain.cause.flapping import taken_over
from leases.domain.change import Change, identity
from leases.domain.incident import Cause, Incident, Source
from tests.support.pauses import ELECTIONS, NODES, Answers, Board, Cluster, pod, watching
from tests.support.values.leases import after

FLAPS = 3
SECONDS = 100.0
HOLDS = pod(FLAPS, "w4bc")  # when it all stops
HOWS = ["stop", "freeze", "cut"]


def crashed(question: Question, now: datetime) -> Iterable[Fact]:
    """The container of the last holder ended again at 12:01:12, and is in a crash loop since."""
    if question.key.name != HOLDS:
        return
    if question.source is Source.PODS:
        yield PodFact(
            key=question.key, read_at=now, uid="p", node="node-1", phase="Running", restarts=4,
            exit_reason="Error", exit_code=2, exited_at=after(72.5), waiting="CrashLoopBackOff",
        )  # fmt: skip
    if question.source is Source.EVENTS:
        yield EventFact(
            kind="Pod", key=question.key, at=after(73), reason="BackOff", message="restarting"
        )


def crashed_once(question: Question, now: datetime) -> Iterable[Fact]:
    return (
        replace(fact, restarts=1, waiting="")
        for fact in crashed(question, now)
        if isinstance(fact, PodFact)
    )


def flapped(*, hosted: bool, answers: Answers = crashed) -> Board:
    """At 71 s an election has been lost five times."""
    cluster = Cluster()
    board = Board(cluster, 0.0, hosted=hosted, answers=answers)
    board.connect()
    board.until(60)
    for number, at in enumerate((61.0, 63.0, 65.0, 67.5, 70.0)):
        cluster.move(FLAPS, pod(FLAPS, f"w{number}bc"), at)
        board.until(at + 1)
    return board


def resumed(board: Board, how: str, answers: Answers = crashed) -> Board:
    """Everything stops, and goes on after a while."""
    cluster = board.cluster
    cluster.off()
    back = board.now + SECONDS
    if how == "stop":
        board.stop()
        board = Board(cluster, back, hosted=True, earlier=board, answers=answers)
        board.connect()
    elif how == "freeze":
        board.stands_still(SECONDS)
    else:
        board.until(board.now + 0.5)
        board.cut()
        board.until(back)
        board.connect()
    cluster.back(back, takers=False)
    return board


def flap_on(board: Board, holders: list[str]) -> None:
    board.cluster.holders[FLAPS].silent = -1.0
    for one in holders:
        board.cluster.move(FLAPS, one, board.now + 1)
        board.until(board.now + 4)


def told_in(board: Board, change: Change) -> list[tuple[Incident, Cause]]:
    return [
        (one, one.causes[member])
        for one in board.incidents
        for member in one.members
        if (member.lease.name, member.identity) == (change.name, identity(change))
    ]


# In the pause a time runs out that began shortly before it, or before its end did, or none does.
@pytest.mark.parametrize(("silent", "stop"), [(71.0, 80.0), (79.5, 80.0), (71.0, 90.0)])
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("same", [True, False])
async def test_a_loss_across_a_pause_is_none_of_flapping(
    how: str, silent: float, stop: float, *, same: bool
) -> None:
    board = flapped(hosted=how != "cut")
    board.until(silent)
    holder = board.cluster.holders[FLAPS]
    holder.silent = 10_000.0
    board.until(stop)
    board = resumed(board, how)
    holder.next, back = 10_000.0, board.now
    board.until(back + 10)
    again = f"{HOLDS}_66cd7b52-b41a-41ab-a2d9-bf4d8dbcd89c" if same else pod(FLAPS, "x0bc")
    flap_on(board, [again, *(pod(FLAPS, f"x{number}bc") for number in (1, 2, 3))])
    for later in (40, 300):
        board.until(back + later)
        across = [one for one in board.losses(stop) if one.at <= after(back + 12)]
        assert {one.name for one in across} >= {f"app-{FLAPS}"}
        told = [told_in(board, one) for one in across]
        (outage,) = {one.id: one for (one, _), *_ in told}.values()
        assert [cause for each in told for _, cause in each] == [Cause.API_OUTAGE] * len(across)
        assert len(outage.leases) == ELECTIONS + NODES
        witness = re.compile(f"Pod team/{HOLDS} ended at .*: Error, exit code 2, restarted 4 times")
        is_told = any(witness.fullmatch(fact.sentence) for fact in outage.evidence)
        assert is_told is ((silent, stop) == (71.0, 80.0))
        (flaps,) = [one for one in board.incidents if one.cause is Cause.FLAPPING]
        lost = 8 + (stop > 80)
        assert flaps.sentence.startswith(f"team/app-{FLAPS} was lost {lost} times within ")
        assert len(board.incidents) == 2
    board.stop()


async def test_a_fight_that_a_watch_brings_late_stays_one_incident() -> None:
    board = flapped(hosted=False)
    board.cut()
    late = []
    for number in range(1, 7):
        at = board.now + 1.0
        board.cluster.move(FLAPS, pod(FLAPS, f"x{number}bc"), at)
        board.until(board.now + 0.5)
        board.now = at
        late += board.cluster.run(at)
    board.connect(listed=False)
    board.arrive(late)
    board.until(board.now + 300)
    [incident] = board.incidents
    assert incident.cause is Cause.FLAPPING
    assert incident.sentence.startswith(f"team/app-{FLAPS} was lost 11 times within ")
    board.stop()


async def test_after_a_stop_the_evidence_of_a_fight_counts_as_its_sentence_does() -> None:
    cluster = Cluster()
    board = watching(cluster, 60)
    for stops in (True, False):
        for number in range(8):
            cluster.move(FLAPS, pod(FLAPS, f"w{number}bc"), board.now + 1)
            board.until(board.now + 2)
        board.until(board.now + 30)
        [incident] = [one for one in board.incidents if one.cause is Cause.FLAPPING]
        assert [one.sentence for one in incident.evidence] == [incident.sentence]
        board.stop()
        if stops:
            board = Board(cluster, board.now + 5, earlier=board)
            board.connect()


async def test_a_loss_stands_for_none_beyond_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for joins in (taken_over, lambda *_: []):
        monkeypatch.setattr(casebook, "taken_over", joins)
        board = flapped(hosted=False)
        for _ in range(3):
            for number in range(12):
                board.cluster.move(FLAPS, pod(FLAPS, f"y{number}bc"), board.now + 1)
                board.until(board.now + 8)
            board.cut()
            board.until(board.now + 30)
            board.connect()
        board.until(board.now + 60)
        told.append(board.incidents)
        board.stop()
    assert told[0] == told[1]
    [fight] = [one for one in told[0] if one.cause is Cause.FLAPPING]
    assert " that nobody watched, by " in fight.sentence


# A contender that begins anew waits for the duration, and for its next check: up to 4.4 s more.
@pytest.mark.parametrize("taken", [1.0, 19.0])
@pytest.mark.parametrize("how", HOWS)
async def test_who_took_after_an_outage_what_was_lost_before_belongs_to_it(
    how: str, taken: float
) -> None:
    cluster = Cluster()
    board = Board(cluster, 0.0, hosted=how != "cut", answers=crashed)
    board.connect()
    board.until(60)
    cluster.holders[FLAPS].silent = 10_000.0
    board.until(80)
    board = resumed(board, how)
    back = board.now + taken
    board.until(back - 0.5)
    cluster.holders[FLAPS].silent = -1.0
    cluster.move(FLAPS, pod(FLAPS, "x0bc"), back)
    board.until(back + 200)
    board.stop()
    crash, outage = sorted(board.incidents, key=lambda told: told.began)
    assert crash.cause is Cause.CRASH
    assert crash.ended is not None
    assert after(78) <= crash.ended <= after(80.5)
    ended = f"; nobody had taken it when the API server went at {crash.ended:%H:%M:%S}"
    assert crash.sentence.endswith(ended)
    lost, taken = (one for one in board.losses(58) if one.name == f"app-{FLAPS}")
    assert told_in(board, lost) == [(crash, Cause.CRASH)]
    assert told_in(board, taken) == [(outage, Cause.API_OUTAGE)]


@pytest.mark.parametrize("taken", [100.0, 185.0])
async def test_what_was_lost_while_we_alone_were_stopped_does_not_count(taken: float) -> None:
    """A dated witness tells its cause; the Lease flaps on after it."""
    board = flapped(hosted=False, answers=crashed_once)
    cluster = board.cluster
    board.until(71)
    cluster.holders[FLAPS].silent = 10_000.0
    board.until(80)
    board.stop()
    cluster.run(min(180, taken))
    if taken < 180:
        cluster.holders[FLAPS].silent = -1.0
        cluster.move(FLAPS, pod(FLAPS, "x0bc"), taken)
        cluster.run(180)
    board = Board(cluster, 180, earlier=board, answers=crashed_once)
    board.connect()
    board.until(184)
    flap_on(board, [pod(FLAPS, f"x{number}bc") for number in range(taken < 180, 4)])
    board.until(300)
    board.stop()
    (flaps,) = [one for one in board.incidents if one.cause is Cause.FLAPPING]
    assert flaps.sentence.startswith(f"team/app-{FLAPS} was lost 8 times within ")
    lost = next(one for one in board.losses(71))
    ((alone, cause),) = told_in(board, lost)
    assert (alone.leases, cause) == ((cluster.holders[FLAPS].key,), Cause.CRASH)


def ended_in_it(question: Question, now: datetime) -> Iterable[Fact]:
    """The container ended again at 12:01:50, while all was off, and is in a crash loop since."""
    for fact in crashed(question, now):
        at = after(110 if now >= after(110) else -50)
        yield replace(fact, exited_at=at) if isinstance(fact, PodFact) else replace(fact, at=at)


@pytest.mark.parametrize("flaps", [True, False])
@pytest.mark.parametrize("taken", [8.0, 29.0, 40.0, 100.0])
@pytest.mark.parametrize("how", HOWS)
async def test_a_container_that_ended_in_an_outage_tells_who_stays_away_after_it(
    how: str, taken: float, *, flaps: bool
) -> None:
    if flaps:
        board = flapped(hosted=how != "cut", answers=ended_in_it)
    else:
        cluster = Cluster()
        cluster.holders[FLAPS].identity = HOLDS
        board = Board(cluster, 0.0, hosted=how != "cut", answers=ended_in_it)
        board.connect()
    board.until(80)
    board = resumed(board, how, ended_in_it)
    holder, back = board.cluster.holders[FLAPS], board.now
    holder.silent = holder.next = 10_000.0
    board.until(back + taken - 0.5)
    alone = [one.cause for one in board.incidents if one.leases == (holder.key,)]
    assert taken < 60 or alone[-1] is Cause.CRASH_LOOP, "before anybody takes it"
    holder.silent = -1.0
    board.cluster.move(FLAPS, pod(FLAPS, "x0bc"), back + taken)
    stays_away = taken > 30  # two durations: others who began anew were back
    for later in (taken + 5, 300):
        board.until(back + later)
        told = [one for one in board.incidents if one.cause is not Cause.FLAPPING]
        (outage,) = [one for one in told if one.cause is Cause.API_OUTAGE]
        assert len(outage.leases) == ELECTIONS + NODES - stays_away
        across = [one for one in board.losses(82) if one.name == f"app-{FLAPS}"]
        its = [one for one in told if one is not outage] if stays_away else [outage]
        cause = Cause.CRASH_LOOP if stays_away else Cause.API_OUTAGE
        assert [told_in(board, one) for one in across] == [[(one, cause) for one in its]] * 2
    board.stop()
