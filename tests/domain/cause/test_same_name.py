"""A StatefulSet gives each Pod the name of the one before: what befell another one is no cause."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import pytest
from msgspec.structs import replace

from leases.domain.cause.casebook import Casebook
from leases.domain.cause.clue import Clue
from leases.domain.cause.facts import EventFact, Fact, NodeFact, PodFact, Question
from leases.domain.incident import Cause, Confidence, Incident, Source
from leases.domain.lease import ObjectName
from leases.tracking.store import Store
from leases.wire.watch_decoding import Applied, Listed
from tests.support.pauses import Board, Cluster
from tests.support.values.leases import NOON, after, lease

KEY = ObjectName("default", "app-0")
BEFORE = PodFact(
    key=KEY, read_at=after(15), uid="a", owner_kind="StatefulSet", owner_name="app",
    phase="Running", node="node-1", created_at=after(-1000), deleted_at=after(50),
)  # fmt: skip
CRASHED = PodFact(
    key=KEY, read_at=after(112), uid="b", owner_kind="StatefulSet", owner_name="app",
    phase="Running", node="node-2", created_at=after(25), restarts=1, exit_reason="Error",
    exit_code=2, exited_at=after(101), started_at=after(111),
)  # fmt: skip
GONE = PodFact(key=KEY, read_at=after(22), gone=True)
KILLED = EventFact(
    kind="Pod", key=KEY, at=after(15), reason="Killing", message="Stopping container main"
)


def lost(holder: str = "app-0") -> list[Clue]:
    """Its holder held it for long, renewed last at 12:01:40, and lost it at 12:01:55."""
    store = Store("c")
    store.replace(Listed((lease(holder),), "1"), NOON)
    found: list[Clue] = []
    for at in range(2, 102, 2):
        update = store.follow([Applied(lease(holder, renewed=at, version=at))], after(at))
        found += update.clues if update is not None else ()
    update = store.turn(after(116))
    return [*found, *(update.clues if update is not None else ())]


def told(*facts: Fact, until: int = 300) -> Incident:
    book = Casebook("c")
    for clue in lost():
        book.note(clue)
    book.learn(facts)
    found = {one.id: one for step in range(116, until) for one in book.review(after(step))}
    (incident,) = (one for one in found.values() if one.members)
    return incident


@pytest.mark.parametrize(
    "earlier",
    [[BEFORE], [BEFORE, KILLED], [BEFORE, GONE, KILLED], [KILLED], [GONE]],
    ids=["read", "read and killed", "read, gone and killed", "killed", "gone"],
)
def test_the_deletion_of_an_earlier_pod_is_none_of_the_one_that_crashed(
    earlier: list[Fact],
) -> None:
    incident = told(*earlier, CRASHED)
    assert (incident.cause, incident.confidence) == (Cause.CRASH, Confidence.LIKELY)
    assert incident.sentence == (
        "app-0, which held default/controller, ended at 12:01:41 (exit code 2)"
    )
    assert [one.sentence for one in incident.evidence] == [
        "Pod default/app-0 ended at 12:01:41: Error, exit code 2, restarted 1 time"
    ]


def test_a_pod_that_was_gone_before_the_last_renewal_did_not_lose_it() -> None:
    """Nobody has read the one that came after it."""
    incident = told(BEFORE, GONE, KILLED)
    assert (incident.cause, incident.confidence) == (Cause.CRASH, Confidence.POSSIBLE)
    assert {one.source for one in incident.evidence} == {Source.LEASES}


def test_the_node_of_an_earlier_pod_is_none_of_the_one_that_crashed() -> None:
    dead = NodeFact(name="node-1", read_at=after(117), ready="Unknown", ready_since=after(105))
    assert told(BEFORE, CRASHED, dead).cause is Cause.CRASH
    assert told(BEFORE, CRASHED, replace(dead, name="node-2")).cause is Cause.NODE_DOWN


def test_a_pod_that_renewed_after_it_was_not_found_is_asked_for_again() -> None:
    """Whoever makes Pods anew under the names that they had is no Deployment, but may be."""
    key = ObjectName("default", "app-6bcjktn59v-q89c7")
    book = Casebook("c")
    for clue in lost(key.name):
        book.note(clue)
    backs_off = replace(KILLED, key=key, at=after(105), reason="BackOff", message="Back-off")
    book.learn([replace(GONE, key=key), backs_off])
    (incident,) = (one for step in range(116, 120) for one in book.review(after(step)))
    assert (incident.cause, incident.confidence) == (Cause.CRASH, Confidence.POSSIBLE)
    assert Question(Source.PODS, key) in book.questions(after(120))
    book.learn([replace(GONE, key=key, read_at=after(120))])
    assert Question(Source.PODS, key) not in book.questions(after(130))


@pytest.mark.parametrize("disrupted", ["EvictionByEvictionAPI", "PreemptionByScheduler"])
def test_what_befell_a_later_pod_did_not_lose_it(disrupted: str) -> None:
    later = replace(
        CRASHED, read_at=after(150), uid="c", created_at=after(140), deleted_at=after(119),
        disrupted=disrupted, reason="Evicted", exited_at=None, exit_reason="", exit_code=None,
    )  # fmt: skip
    assert told(CRASHED, later).cause is Cause.CRASH


def test_a_pod_that_runs_through_a_long_grace_period_was_stopped() -> None:
    """Asked to stop 85 s before its last renewal, it is the one that held the Lease."""
    incident = told(replace(BEFORE, read_at=after(112), deleted_at=after(200)), KILLED, until=130)
    assert (incident.cause, incident.confidence) == (Cause.GRACEFUL_STOP, Confidence.LIKELY)
    assert incident.sentence == (
        "app-0 was stopped and did not release default/controller, which was lost at 12:01:55"
    )


@pytest.mark.parametrize("created", [99.0, 107.0])
def test_a_pod_that_was_made_anew_after_the_last_renewal_shows_that_the_old_one_went(
    created: float,
) -> None:
    anew = replace(
        CRASHED, uid="c", created_at=after(created), restarts=0, exited_at=None, exit_code=None,
        exit_reason="",
    )  # fmt: skip
    incident = told(replace(BEFORE, read_at=after(95), deleted_at=after(130)), anew)
    assert incident.cause is Cause.GRACEFUL_STOP


def made_anew(question: Question, now: datetime) -> Iterable[Fact]:
    """All Pods are made anew when the cluster starts again, and the container of one ends later."""
    key = question.key
    if key.name != "db-0":
        return
    if question.source is Source.PODS and now < after(86):
        yield replace(BEFORE, key=key, read_at=now, deleted_at=after(115))
    elif question.source is Source.PODS:
        pod = replace(CRASHED, key=key, read_at=now, created_at=after(88))
        crashed = {"exited_at": after(160.5), "started_at": after(170)}
        unhurt = {"restarts": 0, "exit_code": None, "exit_reason": "", "exited_at": None}
        yield replace(pod, **(crashed if now > after(161) else unhurt | {"started_at": after(89)}))
    elif question.source is Source.EVENTS:
        yield replace(KILLED, key=key, at=after(80.5))


@pytest.mark.parametrize("again", [False, True])
async def test_a_crash_after_all_was_started_anew_is_no_stop(*, again: bool) -> None:
    cluster = Cluster()
    one = cluster.holders[3]
    one.identity = "db-0"
    board = Board(cluster, 0.0, hosted=True, answers=made_anew)
    board.connect()
    board.until(60)
    board.stop()
    cluster.off()
    board = Board(cluster, 80, hosted=True, earlier=board, answers=made_anew)
    board.connect()
    cluster.back(80, takers=False)
    one.next = 90.0
    board.until(120)
    if again:
        board.stop()
        board = Board(cluster, 121, hosted=True, earlier=board, answers=made_anew)
        board.connect()
    board.until(160)
    one.silent = 10_000.0
    board.until(300)
    board.stop()
    last = max(board.incidents, key=lambda told: told.began)
    assert last.leases == (one.key,)
    assert (last.cause, last.confidence) == (Cause.CRASH, Confidence.LIKELY)
    assert "being deleted" not in str(last.evidence)
