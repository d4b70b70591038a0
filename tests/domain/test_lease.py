"""Small facts about Leases, Nodes and connections, each in one place."""

from __future__ import annotations

import pytest

from leases.domain.lease import ObjectName, first_label, is_number, number_of
from leases.domain.split_dict import PARTS, SplitDict
from leases.domain.watched_times import Connection, ConnectionState
from tests.support.values.leases import NOON, after


@pytest.mark.parametrize(
    ("version", "number"),
    [("12", 12), ("9" * 19, int("9" * 19)), ("9" * 20, 0), ("", 0), (None, 0), ("1x", 0)],
)
def test_a_resource_version_is_a_number_that_etcd_could_count_to(
    version: str | None, number: int
) -> None:
    assert number_of(version) == number
    assert is_number(version or "") is bool(number)


def test_the_first_meaningful_label_counts() -> None:
    names = ("new", "old")
    assert first_label({"old": "a", "new": "b"}, names) == "b"
    assert first_label({"old": "a", "new": ""}, names) == "a"
    assert first_label({"other": "a"}, names) == ""


@pytest.mark.parametrize(
    ("state", "heard", "known"),
    [
        (ConnectionState.LIVE, 5, 10),
        (ConnectionState.STALE, 5, 5),
        (ConnectionState.STALE, 15, 10),
        (ConnectionState.REFUSED, 5, 5),
        (ConnectionState.CONNECTING, None, 10),
    ],
)
def test_without_a_live_watch_data_is_as_old_as_its_last_event(
    state: ConnectionState, heard: float | None, known: float
) -> None:
    one = Connection(state=state, since=NOON, heard_at=None if heard is None else after(heard))
    assert one.as_of(after(10)) == after(known)


def test_a_split_dict_is_a_dict_none_of_whose_parts_is_large() -> None:
    keys = [ObjectName("default", f"lease-{number}") for number in range(PARTS * 50)]
    numbers: SplitDict[int] = SplitDict()
    for number, key in enumerate(keys):
        numbers[key] = number
    assert len(numbers) == len(keys)
    assert sorted(numbers) == list(range(len(keys)))
    assert [numbers.get(key) for key in keys[:3]] == [0, 1, 2]
    assert max(map(len, numbers._parts)) < 150
    numbers[keys[0]] = 7
    assert numbers.pop(keys[0]) == 7
    assert numbers.get(keys[0]) is None
    assert len(numbers) == len(keys) - 1
    with pytest.raises(KeyError):
        numbers.pop(keys[0])
