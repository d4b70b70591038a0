"""The wall clock of a serving process is set: real API, real sockets, real SQLite."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from leases.wire.microtime import format_microtime
from tests.serving.tasks.stepped_board import SAID, STEPS, Board, moment
from tests.support.processes import ended, wait_for
from tests.support.programs.lease_apis import history


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    board = Board(tmp_path / "data")
    with ended(board.server):
        yield board


def test_no_step_of_the_clock_changes_anything(board: Board, tmp_path: Path) -> None:
    board.api.create("steady", holder="h-0", duration=3000)
    board.api.create("vacant", holder="")
    board.api.create("quick", holder="q", duration=1)
    wait_for(lambda: len(board.asked("history/?format=json")["items"]) == 4, what="the beginning")
    assert SAID not in board.text("")
    first, began = board.lease("steady")
    since = moment(first["observed_at"]), began
    for number, seconds in enumerate(STEPS):
        before = board.left("steady")
        board.step()
        assert before - 5 < board.left("steady") <= before
        item, now = board.lease("steady")
        by = timedelta(seconds=sum(STEPS[: number + 1]))
        assert timedelta(0) < now - since[1] - by < timedelta(seconds=60)
        assert abs(moment(item["observed_at"]) - now) < timedelta(seconds=60)
        assert item["phase"] == "held"
        for path in ("", "leases/", "leases/default/steady/", "timeline/", "wall/", "history/"):
            assert f"{SAID} {'forward' if seconds > 0 else 'back'} by" in board.text(path), path
        board.take("steady", number + 1)
    assert board.server.text.count(SAID) == len(STEPS)
    assert board.server.interrupt() == 0
    changes = history(board.server.data, "embedded")
    assert sorted(str(change["change"]) for change in changes) == sorted(
        ["created"] * 3 + ["expired"] + ["replaced"] * len(STEPS)
    )
    assert all(change["gap_seconds"] is None for change in changes)
    taken = {str(change["holder"]): change for change in changes if change["change"] == "replaced"}
    for number in range(len(STEPS)):
        change = taken[f"h-{number + 1}"]
        off = moment(str(change["at"])) - began - timedelta(seconds=sum(STEPS[: number + 1]))
        assert timedelta(0) < off < timedelta(seconds=60)
        assert change["at"] == change["observed_at"]
        assert not change["inferred"]


def renewed_live(board: Board) -> bool:
    """Whether a renewal counts from when it was observed, not from what it claims."""
    board.api.patch("steady", renewTime=format_microtime(datetime.now(UTC)))
    return "estimated from renewTime" not in board.text("leases/default/steady/")


def test_a_restart_after_a_step_goes_on_with_what_was_written(board: Board) -> None:
    board.api.create("steady", holder="h-0", duration=3000)
    wait_for(lambda: board.asked("history/?format=json")["items"], what="the first change")
    board.step()
    seen = moment(board.lease("steady")[0]["observed_at"])
    wait_for(lambda: remembered(board.server.data, "steady") == seen, what="the state as of now")
    board.server.kill()
    with ended(board.server.again()) as server:
        server.wait_synced()
    assert [change["change"] for change in history(server.data, "embedded")] == ["created"]


def remembered(data: Path, name: str) -> datetime:
    """observed_at of a Lease in the checkpoint."""
    asked = "SELECT tracked FROM leases_leaserecord WHERE name = ?"
    with closing(sqlite3.connect(data / "leaseboard.sqlite3")) as database:
        ((state,),) = database.execute(asked, (name,))
    return moment(json.loads(state)["observed_at"])


def test_a_cluster_without_leases_notices_it_too_and_changes_have_the_new_time(
    board: Board,
) -> None:
    """The next event of the watch notices it: nobody waits for the next look at the clock."""
    board.step()
    assert SAID in board.text("")
    board.step()  # and back
    board.api.create("steady", holder="h-0", duration=3000)
    wait_for(lambda: renewed_live(board), what="the end of what may be late after a list")
    _, began = board.lease("steady")
    board.server.process.send_signal(signal.SIGUSR1)
    board.take("steady", 1)
    wait_for(lambda: len(board.asked("history/?format=json")["items"]) == 2, what="the change")
    newest, _ = board.asked("history/?format=json")["items"]
    assert newest["change"] == "replaced"
    by = moment(newest["at"]) - began - timedelta(seconds=STEPS[2])
    assert timedelta(0) < by < timedelta(minutes=1)
