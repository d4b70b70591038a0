"""Play one recording: its bytes through the tracker, its updates into a casebook."""

from __future__ import annotations

from datetime import datetime, timedelta

from leases.domain.cause.casebook import Casebook
from leases.domain.cause.clue import Clue
from leases.domain.cause.facts import Fact, RefusedSource
from leases.domain.incident import Incident
from leases.domain.lease import Lease, ObjectName
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.tracking.tracker import Tracker
from leases.wire.renewal_lines import Reader
from leases.wire.watch_decoding import (
    Applied,
    Arrived,
    Bookmark,
    Connected,
    Deleted,
    Disconnected,
    Listed,
    ReflectorEvent,
    WatchEvent,
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


Cut = tuple[datetime, datetime]


class _Player:
    def __init__(self, recording: Recording, *, alone: bool, cut: Cut | None = None) -> None:
        """`cut`: the board stops at its first moment, and another run starts at its second."""
        self._recording = recording
        self._objects = None if alone else ObjectsAsOf(recording)
        self._cut = cut
        self._stopped = False
        self._there: dict[ObjectName, Lease] = {}
        self._version = ""
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
        # The second run needs each Lease whole, so nothing stays undecoded.
        reader = Reader({} if self._cut else self._store.fingerprints)
        initial: list[Lease] | None = []
        for line in connection.lines:
            self._until(line.at)
            event = reader.read(line.body)
            self._note(event)
            if self._is_off():
                initial = None
                continue
            if self._stopped:
                self._start_again()
                initial = None
            elif initial is None:
                self._handle(Arrived((event,)))
            elif isinstance(event, Bookmark):
                reason = "gone" if self._store.synced else "start"
                self._handle(Listed(tuple(initial), event.resource_version, reason), Connected())
                initial = None
            else:
                assert isinstance(event, Applied)
                initial.append(event.lease)
        self._until(connection.ended)
        if not self._is_off():
            self._handle(Disconnected("The watch ended."))

    def _note(self, event: WatchEvent) -> None:
        """Keep what a list would contain, for the second run."""
        if isinstance(event, Applied):
            self._there[event.lease.key] = event.lease
        elif isinstance(event, Deleted):
            self._there.pop(event.lease.key, None)
        self._version = event.resource_version

    def _is_off(self) -> bool:
        """Whether the board is stopped now; it stops when its time has come."""
        if self._cut is None or not self._cut[0] <= self._now < self._cut[1]:
            return False
        if not self._stopped:
            self._tracker.stop()
        self._stopped = True
        return True

    def _start_again(self) -> None:
        """Another run begins with what the first one stored."""
        assert self._cut is not None
        stopped_at, self._stopped = self._cut[0], False
        earlier, version = self._store.snapshot(), self._tracker.resource_version
        going_on = [
            one
            for one in self.played.told.values()
            if one.members and (one.ended is None or not one.settled)
        ]
        self._store = Store("recorded")
        self._store.restore(earlier, stopped_at)
        self._casebook = Casebook("recorded")
        self._casebook.restore(going_on, stopped_at)
        self._answers = []
        self._tracker = Tracker(self._store, [self._sink], lambda: self._now)
        self._tracker.resource_version = version
        leases = tuple(self._there.values())
        self._handle(Listed(leases, self._version, "start"), Connected())

    def _handle(self, *events: ReflectorEvent) -> None:
        for event in events:
            self._tracker.handle(event)
        self._review()

    def _sink(self, update: Update) -> None:
        if update.missed is not None:
            self._casebook.missed(update.missed)
        if update.connection is not None:
            self._casebook.watch(update.connection, self._now)
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
            if self._is_off():
                continue
            if live and not self._stopped:
                self._tracker.tick()
            if not self._stopped:
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


def play(recording: Recording, *, alone: bool, cut: Cut | None = None) -> Played:
    """Play a recording, with Pods, Nodes and Events or from Leases alone; `cut` into two runs."""
    return _Player(recording, alone=alone, cut=cut).play()
