"""One budget of bytes for all clients who do not read: who ends, and what counts."""

from __future__ import annotations

import pytest

from leases.listener import limits
from leases.listener.limits import CONNECTION_BYTES, MIB, Unread


class Client:
    def __init__(self, *, tells: bool = False) -> None:
        self.tells = tells
        self.ended: list[str] = []

    def give_up(self) -> bool:
        self.ended.append("given up")
        return self.tells

    def cut(self) -> None:
        self.ended.append("cut")


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> Unread:
    monkeypatch.setattr(limits, "SLOW_SECONDS", 0.0)
    return Unread(2 * MIB)


def large() -> bytes:
    return bytes(MIB - CONNECTION_BYTES)


def test_the_one_who_waits_longest_ends_first(unread):
    clients = [Client() for _ in range(3)]
    for client in clients:
        unread.begin(client, (large(),))
    assert [client.ended for client in clients] == [["given up"], [], []]
    assert unread.bytes == 2 * MIB


def test_who_takes_something_waits_anew(unread):
    first, second, third = (Client() for _ in range(3))
    unread.begin(first, (large(),))
    unread.begin(second, (large(),))
    unread.end(first)
    unread.begin(first, (large(),))
    unread.begin(third, (large(),))
    assert (first.ended, second.ended, third.ended) == ([], ["given up"], [])


def test_where_nobody_was_slow_yet_the_latest_ends(unread, monkeypatch):
    monkeypatch.setattr(limits, "SLOW_SECONDS", 3600.0)
    clients = [Client() for _ in range(3)]
    for client in clients:
        unread.begin(client, (large(),))
    assert [client.ended for client in clients] == [[], [], ["given up"]]


def test_bytes_that_wait_for_several_count_once(unread):
    shared, clients = large(), [Client() for _ in range(5)]
    for client in clients:
        unread.begin(client, (shared,))
    assert unread.bytes == len(shared) + 5 * CONNECTION_BYTES
    for client in clients:
        unread.end(client)
    assert unread.bytes == 0
    assert not any(client.ended for client in clients)


def test_what_comes_later_and_what_is_kept_beside_count_too(unread):
    client = Client()
    unread.begin(client, (), more=MIB)
    unread.add(client, b"x" * 100)
    assert unread.bytes == CONNECTION_BYTES + MIB + 100
    unread.add(client, bytes(MIB))
    assert client.ended == ["given up"]
    unread.add(client, b"x")  # it is no longer there
    assert unread.bytes == 0


def test_who_is_told_and_does_not_go_is_cut(unread):
    clients = [Client(tells=True) for _ in range(60)]
    for client in clients:
        unread.begin(client, (large(),))
    assert clients[0].ended == ["given up", "cut"]
    assert clients[-10].ended == ["given up"]
    assert clients[-1].ended == []
