"""The open incidents of one cluster: clues and facts go in, incidents come out.

Stateful, but without clock and IO: the caller passes `now` and looks up the questions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime

import msgspec

from leases.domain.cause.clue import Clue, LateRenewal
from leases.domain.cause.facts import Fact, Question
from leases.domain.cause.incident import Cause, Confidence, Evidence, Incident, Member, Source
from leases.domain.changes.change import HOLDER_CHANGES, ChangeType
from leases.domain.connection import Connection

_replace = msgspec.structs.replace


class Casebook:
    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._open: dict[str, Incident] = {}
        self._news: dict[str, None] = {}

    def note(self, clue: Clue) -> None:
        """Add one change."""
        change = clue.change
        if change.change not in (*HOLDER_CHANGES, ChangeType.RELEASED, ChangeType.EXPIRED):
            return
        number = hashlib.sha256(f"{self._cluster} {clue.key} {clue.identity}".encode())
        sentence = f"{clue.key}: {change.change.value.replace('_', ' ')}"
        incident = Incident(
            id=number.hexdigest()[:16],
            cluster=self._cluster,
            cause=Cause.UNKNOWN,
            confidence=Confidence.POSSIBLE,
            sentence=sentence,
            began=change.at,
            ended=change.at,
            leases=(clue.key,),
            evidence=(Evidence(sentence, Source.LEASES),),
            members=(Member(clue.key, clue.identity),),
            settled=True,
        )
        self._open[incident.id] = incident
        self._news[incident.id] = None

    def late(self, renewal: LateRenewal) -> None:
        """Add a renewal that nearly came too late."""

    def watch(self, connection: Connection, now: datetime) -> None:
        """Our own watch broke, or lives again."""

    def learn(self, facts: Iterable[Fact]) -> None:
        """Add what the cluster answered."""

    def questions(self, now: datetime) -> list[Question]:
        """Return what to look up now, most telling first."""
        return []

    def review(self, now: datetime) -> list[Incident]:
        """Return the incidents that are new, or differ since the last review.

        One without members is withdrawn: its changes belong to the incident `part_of` now.
        """
        news = [self._open.pop(number) for number in self._news]
        self._news.clear()
        return news

    def next_review(self, now: datetime) -> datetime | None:
        """Return when to review again; None: not before the next clue or fact."""
        return now if self._news else None

    def restore(self, incidents: Iterable[Incident]) -> None:
        """Go on with the incidents that were open at the last stop."""

    def going_on(self) -> list[Incident]:
        """Return the incidents that have not ended."""
        return []
