"""Play one recording: its bytes through the tracker, its updates into a casebook."""

from __future__ import annotations

from datetime import datetime, timedelta

from leases.domain.cause.casebook import Casebook
from leases.domain.cause.clue import Clue
from leases.domain.cause.facts import Fact, RefusedSource
from leases.domain.cause.incident import Incident
from leases.domain.lease import Lease
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.tracking.tracker import Tracker
from leases.wire.lines import Reader
from leases.wire.watch_decoding import (
    Applied,
    Arrived,
    Bookmark,
    Connected,
    Disconnected,
    Listed,
    ReflectorEvent,
)
from tests.support.incidents.objects_as_of import ObjectsAsOf
from tests.support.incidents.recording import Connection, Recording

ANSWERED_AFTER = timedelta(seconds=0.2)
STEP = timedelta(seconds=0.5)
AFTERWARDS = timedelta(minutes=5)  # so that every incident is settled


class Played:
    """What became of one recording."""

    def __init__(self) -> None:
        self.clues: list[Clue] = []
        self.told: dict[str, Incident] = {}  # as told last, by id
        self.tellings: list[Incident] = []
        self.questions = 0

    @property
    def incidents(self) -> list[Incident]:
        return [one for one in self.told.values() if one.members]


class _Player:
    def __init__(self, recording: Recording, *, alone: bool) -> None:
        self._recording = recording
        self._objects = None if alone else ObjectsAsOf(recording)
        self._casebook = Casebook("recorded")
        self._store = Store("recorded")
        self._now = datetime.fromisoformat(recording.truth["opened"])
        self._tracker = Tracker(self._store, [self._sink], lambda: self._now)
        self._answers: list[tuple[datetime, Fact]] = []
        self.played = Played()

    def play(self) -> Played:
        try:
            for connection in self._recording.connections():
                self._follow(connection)
            self._until(self._now + AFTERWARDS)
        finally:
            self._tracker.stop()
        return self.played

    def _follow(self, connection: Connection) -> None:
        self._until(connection.opened)
        reader = Reader(self._store.fingerprints)
        initial: list[Lease] | None = []
        for line in connection.lines:
            self._until(line.at)
            event = reader.read(line.body)
            if initial is None:
                self._handle(Arrived((event,)))
            elif isinstance(event, Bookmark):
                reason = "gone" if self._store.synced else "start"
                self._handle(Listed(tuple(initial), event.resource_version, reason), Connected())
                initial = None
            else:
                assert isinstance(event, Applied)
                initial.append(event.lease)
        self._until(connection.ended)
        self._handle(Disconnected("The watch ended."))

    def _handle(self, *events: ReflectorEvent) -> None:
        for event in events:
            self._tracker.handle(event)
        self._review()

    def _sink(self, update: Update) -> None:
        if update.missed is not None:
            self._casebook.missed(update.missed)
        if update.connection is not None:
            self._casebook.watch(update.connection, self._now)
        for late in update.late:
            self._casebook.late(late)
        for clue in update.clues:
            self.played.clues.append(clue)
            self._casebook.note(clue)

    def _until(self, until: datetime) -> None:
        """Let the clock come so far, with every deadline and answer in between."""
        live = self._now <= datetime.fromisoformat(self._recording.truth["ended"])
        while self._now < until:
            due = [self._now + STEP, self._store.next_deadline() if live else None]
            due += [at for at, _ in self._answers]
            self._now = min([until, *(at for at in due if at is not None and at > self._now)])
            if live:
                self._tracker.tick()
            self._review()

    def _review(self) -> None:
        now, casebook = self._now, self._casebook
        arrived = [fact for at, fact in self._answers if at <= now]
        self._answers = [(at, fact) for at, fact in self._answers if at > now]
        if arrived:
            casebook.learn(arrived)
        for question in casebook.questions(now):
            self.played.questions += 1
            facts: list[Fact]
            if self._objects is None:
                facts = [RefusedSource(question.source, now, "forbidden")]
            else:
                facts = self._objects.answer(question, now)
            self._answers += [(now + ANSWERED_AFTER, fact) for fact in facts]
        for incident in casebook.review(now):
            self.played.tellings.append(incident)
            self.played.told[incident.id] = incident


def play(recording: Recording, *, alone: bool) -> Played:
    """Play a recording, with Pods, Nodes and Events or from Leases alone."""
    return _Player(recording, alone=alone).play()
