"""An episode with its verdict, and the episodes of one incident."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from leases.domain.cause.episode import Episode
from leases.domain.cause.verdict import Verdict

LONGEST = timedelta(minutes=30)  # of one incident

K = TypeVar("K")


class Judged(msgspec.Struct, frozen=True):
    """An episode with its verdict, and the node where its loser ran."""

    episode: Episode
    verdict: Verdict
    at: datetime  # of its first change
    lost_at: datetime  # when the loser was last seen alive
    number: str  # the id of the incident that it begins
    serial: int  # another one for each judgement
    changed_at: datetime  # our clock at its last change
    node: str = ""
    stopped_at: datetime | None = None  # when its Pod was asked to stop
    died: bool | None = None  # its process died with its node; None: unknown


class Group(msgspec.Struct, frozen=True):
    """The episodes of one incident, oldest first."""

    episodes: tuple[Judged, ...]
    verdict: Verdict
    hosts: tuple[str, ...] = ()


def chains(
    some_of: list[Judged],
    gap: timedelta,
    end: Callable[[Judged], datetime],
    longest: timedelta = LONGEST,
    few: int = 0,
) -> list[list[Judged]]:
    """Cut a list where more than `gap` passes between one episode and the next, and after the
    `longest` time, unless it has no more than a `few` episodes: no incident grows for ever.
    """
    found: list[list[Judged]] = []
    until: datetime | None = None
    for one in some_of:
        late = until is None or one.lost_at - until > gap
        if until is None or late or _is_full(found[-1], one, longest, few):
            found.append([])
            until = end(one)
        found[-1].append(one)
        until = max(until, end(one))
    return found


def several(by: dict[K, list[Judged]], least: int = 2) -> Iterator[list[Judged]]:
    """Yield those lists alone that can be a group: most episodes stand alone."""
    return (there for there in by.values() if len(there) >= least)


def _is_full(chain: list[Judged], one: Judged, longest: timedelta, few: int) -> bool:
    return len(chain) >= few and one.lost_at - chain[0].lost_at > longest
