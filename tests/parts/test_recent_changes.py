"""The newest changes of a page: each once, and none that the live feed sends again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from dashboard.parts.change_sentence import (
    change_line,
    changes_of,
    recent_changes,
    with_known_causes,
    with_unwritten,
)
from leases.domain.change import Change, ChangeType, identity
from leases.domain.incident import Cause, Member
from leases.domain.kind import Kind
from leases.history import find_changes
from leases.history.write_batch import write_changes
from leases.tracking.tracked_lease import Update
from tests.support.board import KEY
from tests.support.values.incidents import open_incident

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def change(number: int) -> Change:
    at = NOW.replace(second=number)
    return Change(
        cluster="a", namespace=KEY.namespace, name=KEY.name, uid="u", kind=Kind.ELECTION,
        change=ChangeType.ACQUIRED, at=at, observed_at=at, holder=f"cp-{number}",
        resource_version=str(number),
    )  # fmt: skip


@pytest.mark.django_db
def test_what_another_replica_wrote_by_its_clock_comes_once(board):
    mine = msgspec.structs.replace(
        change(3), change=ChangeType.EXPIRED, resource_version="", own_identity="u expired  ab12"
    )
    theirs = msgspec.structs.replace(mine, at=mine.at - timedelta(milliseconds=40))
    write_changes([theirs])
    (read,) = find_changes.recent("a", 20)
    assert change_line(read, NOW).id == change_line(mine, NOW).id
    board.publisher.hubs["a"].publish(Update(cluster="a", now=NOW, seq=1, changes=(mine,)))
    assert len(recent_changes("a", 20)[1]) == 1


def test_a_cause_that_history_has_not_yet_is_that_of_the_feed(board, monkeypatch):
    hub = board.publisher.hubs["a"]
    mine, member = change(3), Member(KEY, identity(change(3)))
    hub.publish(Update(cluster="a", now=NOW, seq=1, changes=(mine,)))
    first = open_incident(KEY, cause=Cause.UNKNOWN, members=(member,), settled=False)
    hub.incidents_moved([first])
    written = [msgspec.structs.replace(mine, cause=first.cause, incident=first.id)]
    monkeypatch.setattr(find_changes, "recent", lambda *_: written)
    monkeypatch.setattr(find_changes, "of_lease", lambda *_: written)
    hub.incidents_moved([msgspec.structs.replace(first, cause=Cause.CRASH)])
    for found in (
        recent_changes("a", 20)[1],
        changes_of("a", KEY, 20)[1],
        with_unwritten("a", written, 20)[1],
        with_known_causes(written),
    ):
        assert [one.cause for one in found] == [Cause.CRASH]


@pytest.mark.parametrize("read", ["recent", "of_lease"])
def test_a_change_that_is_written_while_a_page_reads_is_left_to_the_feed(board, monkeypatch, read):
    def publish(one: Change) -> None:
        board.publisher.hubs["a"].publish(
            Update(cluster="a", now=one.at, seq=one.at.second, changes=(one,))
        )

    def read_history(*_args: object) -> list[Change]:
        publish(change(3))
        return [change(3), change(2), change(1)]

    monkeypatch.setattr(find_changes, read, read_history)
    publish(change(2))
    find = recent_changes if read == "recent" else lambda a, limit: changes_of(a, KEY, limit)
    seq, found = find("a", 20)
    assert found == [change(2), change(1)]
    assert board.publisher.hubs["a"].seq > seq
    _, found = find("a", 1)
    assert found == [change(3)]
