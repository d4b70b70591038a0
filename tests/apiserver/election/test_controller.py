"""Step by step, with a clock that the test moves: who is pinged and who is elected."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from leases.apiserver import election as controller_module
from leases.apiserver.http.options import DeleteOptions
from leases.apiserver.registry.delete import delete
from leases.apiserver.resources import LEASES
from tests.apiserver.election.room import SPACE, Room


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    room = Room(tmp_path)
    await room.open()
    yield room
    await room.close()


async def test_a_candidate_that_just_renewed_is_elected_without_a_ping(room: Room) -> None:
    await room.stand("a")
    await room.after(0)
    assert room.spec() == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 5,
        "renewTime": room.moment(0),
        "strategy": "OldestEmulationVersion",
    }
    assert room.pinged("a") is None


async def test_candidates_that_renewed_long_ago_are_pinged_first(room: Room) -> None:
    await room.stand("a", "1.35.0", renewed=-600)
    await room.stand("b", renewed=-600)
    await room.after(0)
    assert room.pinged("a") == room.pinged("b") == room.moment(0)
    assert not room.exists("sched", LEASES)
    await room.renew("b")
    await room.after(2)
    assert not room.exists("sched", LEASES), "a may still answer"
    await room.renew("a")
    await room.after(0)
    assert room.spec()["holderIdentity"] == "a"


async def test_one_that_does_not_answer_within_five_seconds_is_left_out(room: Room) -> None:
    await room.stand("a", "1.35.0", renewed=-600)
    await room.stand("b")
    await room.after(0)
    await room.after(4)
    await room.renew("b")
    await room.after(2)
    assert room.spec()["holderIdentity"] == "b"


async def test_silence_elects_nobody_and_is_not_pinged_again(room: Room) -> None:
    await room.stand("a", renewed=-600)
    await room.after(0)
    written = len(room.written)
    for _ in range(10):
        await room.after(6)
    assert len(room.written) == written
    await room.renew("a")
    await room.after(0)
    assert room.spec()["holderIdentity"] == "a"


async def test_every_quarter_of_an_hour_all_candidates_are_pinged(room: Room) -> None:
    await room.stand("a")
    await room.hold("a", leaseDurationSeconds=7200, strategy="OldestEmulationVersion")
    await room.after(899)
    assert room.pinged("a") is None
    await room.after(5)
    assert room.pinged("a") == room.moment(904)
    before = room.spec()
    await room.renew("a")
    await room.after(5)
    assert room.spec() == before


async def test_a_better_candidate_is_preferred_and_elected_once_the_term_has_ended(
    room: Room,
) -> None:
    await room.stand("a")
    await room.after(0)
    await room.change(LEASES, "sched", leaseDurationSeconds=15, leaseTransitions=3)
    await room.stand("b", "1.35.0")
    await room.after(1)
    held = room.spec()
    assert (held["holderIdentity"], held["preferredHolder"]) == ("a", "b")
    for _ in range(3):
        await room.after(5)
        await room.renew("b")
    await room.after(1)
    taken = room.spec()
    assert (taken["holderIdentity"], taken["leaseTransitions"]) == ("b", 3)
    assert taken["leaseDurationSeconds"] == 5
    assert "preferredHolder" not in taken


@pytest.mark.parametrize("holder", ["", None])
async def test_a_vacant_lease_is_given_at_once(room: Room, holder: str | None) -> None:
    await room.hold(holder, acquireTime=room.moment(-5))
    await room.stand("a")
    await room.after(0)
    assert room.spec()["holderIdentity"] == "a"
    assert "acquireTime" not in room.spec()


async def test_a_deleted_lease_is_created_again(room: Room) -> None:
    await room.stand("a")
    await room.after(0)
    await delete(room.store, LEASES, SPACE, "sched", DeleteOptions())
    await room.after(1)
    assert room.spec()["holderIdentity"] == "a"


async def test_a_lease_without_candidates_is_left_alone(room: Room) -> None:
    await room.stand("a", lease="other")
    await room.hold("x", leaseDurationSeconds=1, strategy="OldestEmulationVersion")
    before = room.spec()
    await room.after(60)
    assert room.spec() == before


@pytest.mark.parametrize("emulation", ["1.35.0", ""])
async def test_another_controller_elects_by_a_strategy_with_a_domain(
    room: Room, emulation: str
) -> None:
    await room.stand("a", emulation, strategy="example.com/mine")
    await room.after(0)
    found = room.spec()
    assert found["strategy"] == "example.com/mine"
    assert "holderIdentity" not in found
    await room.change(LEASES, "sched", holderIdentity="theirs", preferredHolder="next")
    taken = room.spec()
    await room.renew("a")
    await room.after(30)
    assert room.spec() == taken


async def test_the_strategy_of_the_newest_binary_counts(room: Room) -> None:
    await room.stand("a", "1.35.0", binary="1.35.0", strategy="example.com/mine")
    await room.stand("b", "1.35.0", binary="1.36.0")
    await room.after(0)
    assert room.spec()["strategy"] == "OldestEmulationVersion"
    assert room.spec()["holderIdentity"] == "a"


async def test_candidates_that_disagree_elect_nobody(room: Room) -> None:
    await room.stand("a", strategy="example.com/mine")
    await room.stand("b")
    await room.after(0)
    assert not room.exists("sched", LEASES)


async def test_candidates_of_half_an_hour_ago_are_deleted_twice_an_hour(room: Room) -> None:
    await room.stand("old", renewed=-1801)
    await room.stand("young", renewed=-1799)
    await room.after(0)
    assert not room.exists("old")
    assert room.exists("young")
    assert not room.exists("sched", LEASES), "young has to answer first"
    await room.after(1795)
    assert room.exists("young")
    await room.after(5)
    assert not room.exists("young")


async def test_a_refused_write_is_logged_and_no_failure(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    await room.stand("a", lease="No Lease Name")
    with caplog.at_level(logging.WARNING):
        await room.after(0)
    (said,) = caplog.messages
    assert said.startswith("The election of Lease default/No Lease Name waits: Lease.coordination")
    await room.stand("b")
    await room.after(0)
    assert room.spec()["holderIdentity"] == "b"


async def test_an_election_continues_after_a_restart(tmp_path: Path) -> None:
    first = Room(tmp_path)
    await first.open()
    await first.stand("a", "1.35.0", renewed=-600)
    await first.stand("b", renewed=-600)
    await first.after(0)
    await first.close()
    second = Room(tmp_path)
    await second.open()
    await second.after(1)
    assert second.pinged("a") == second.moment(0), "it was asked before the restart"
    await second.renew("b")
    await second.after(5)
    assert second.spec()["holderIdentity"] == "b"
    await second.close()


async def test_elections_go_on_after_an_error_that_nobody_expected(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[Exception] = []
    controller, calls = room.controller, iter([OSError("disk")])
    monkeypatch.setattr(controller, "_failed", lambda _, error: failures.append(error))
    monkeypatch.setattr(controller_module, "REQUEUE_SECONDS", 0.0)

    async def advance() -> None:
        for error in calls:
            raise error
        controller.close()

    monkeypatch.setattr(controller, "advance", advance)
    await controller.run()
    assert [str(error) for error in failures] == ["disk"]
