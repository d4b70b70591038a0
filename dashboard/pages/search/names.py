"""The names of a cluster, in which a keystroke is searched.

They are one text each, which C searches in milliseconds. The text is made once, then grows with
what the feed reports; nothing walks all Leases for a keystroke. It keeps the names of deleted
Leases; history says of those that are found whether it knows them. It keeps those of former holders
too, and what the newest incidents say.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from weakref import WeakKeyDictionary

from dashboard.board import running_board
from dashboard.feed import ClusterFeed
from dashboard.parts.cause_words import CAUSE_WORDS
from dashboard.parts.holdings import KINDS, host_of
from dashboard.watched_cluster import WatchedCluster
from leases.domain.kind import NODE_LEASES, Kind
from leases.domain.lease import ObjectName
from leases.history.find_incidents import FIRST_TIME, BriefIncident, newest_incidents
from leases.history.states_as_of import newest_former_holders, newest_gone
from leases.tracking.tracked_lease import Tracked

EXACT, BEGINS, BEGINS_WORD, INSIDE, BESIDE = range(5)  # where a text was found; the best first
MAX_LINES = 300  # that are compared for one word; of more, those that begin with it come first
MAX_LINES_OF_WORDS = 1000  # with several words, of which most lines have only one
MAX_ADDED = 1000  # names; then the text is made again
MAX_GONE = 2000  # deletions, and ends of terms, of each kind whose names are found
MAX_INCIDENTS = 2000
MAX_LATE = 100  # incidents that are read again when some began, changed or ended
WRITTEN = 10.0  # seconds after which history has what the feed reported
EVERY = 1.0  # seconds between two reads of the newest incidents
COST = 10.0  # it is not made again for so many times as long as that took


def rank_of(line: str, place: int, text: str) -> int:
    """How well a line is found by a text at `place`: the name counts more than the namespace."""
    name = line.find("/") + 1
    if place == name or (place == 0 and "/" in text):
        return EXACT if len(line) == place + len(text) else BEGINS
    if place > name:
        return BEGINS_WORD if line[place - 1] in "-._" else INSIDE
    return BESIDE


class NameText:
    """Names, a line each; `mark` stands before what counts as the name. Values in, values out."""

    def __init__(self, names: Iterable[str] = (), *, mark: str = "/") -> None:
        self.text, self._mark = "\n", mark
        self.add(names)

    def add(self, names: Iterable[str]) -> None:
        self.text += "".join([f"{name}\n" for name in names])

    def find(self, words: Sequence[str], share: int = 1) -> dict[str, int]:
        """Some lines that have all words, with the rank of a word: all, where they are not many.

        `share`: of so many texts that are searched together, each gives fewer lines.
        """
        found: dict[str, int] = {}
        most = (MAX_LINES if len(words) == 1 else MAX_LINES_OF_WORDS) // share
        for word in sorted(words, key=len, reverse=True):
            for before, after in (("", ""), (self._mark, ""), (self._mark, "\n")):
                seen = 0
                for line, place in islice(self._lines(before + word + after), most):
                    seen += 1
                    if all(other in line for other in words):
                        rank = EXACT if after else rank_of(line, place + len(before), word)
                        found[line] = min(rank, found.get(line, BESIDE))
                if seen < most and not before:
                    return found  # these were all
                if seen < most:
                    break
        return found

    def _lines(self, pattern: str) -> Iterator[tuple[str, int]]:
        """Each line with the pattern, and the place of the pattern in it."""
        at = self.text.find(pattern)
        while at >= 0:
            begin = self.text.rfind("\n", 0, at + (pattern[0] == "\n")) + 1
            end = self.text.find("\n", begin)
            yield self.text[begin:end], at - begin
            at = self.text.find(pattern, end)


class IncidentTexts:
    """What the newest incidents of a cluster say, a line each, the newest first."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._known: dict[str, BriefIncident] = {}  # newest first
        self.by_line: dict[str, BriefIncident] = {}
        self.text = NameText(mark="\n")
        self._read_at = self._until = self._stirred = float("-inf")

    def stir(self) -> None:
        """Some began, changed or ended: history will have them within seconds."""
        self._stirred = time.monotonic()

    def catch_up(self) -> None:
        begun = time.monotonic()
        if begun >= self._until and self._read_at < self._stirred + WRITTEN:
            self.read(MAX_LATE)
            ended = time.monotonic()
            self._until = ended + max(EVERY, COST * (ended - begun))

    def read(self, most: int) -> None:
        """Read the newest again."""
        self._read_at = time.monotonic()
        newest = newest_incidents(self._cluster, most)
        since = newest[-1].began if len(newest) == most else FIRST_TIME
        read = {one.id: one for one in newest}
        older = {name: one for name, one in self._known.items() if one.began <= since}
        self._known = dict(islice((read | older | read).items(), MAX_INCIDENTS))
        by_line = {_line(one): one for one in self._known.values()}
        self.by_line, self.text = by_line, NameText(by_line, mark="\n")


def _line(incident: BriefIncident) -> str:
    words = incident.id, CAUSE_WORDS[incident.cause], incident.cause.value, incident.sentence
    return " ".join(" ".join(words).lower().split())


class ClusterNames:
    """The names of one cluster's Leases and holders, and its incidents. Any thread may ask: one
    that catches up while another does adds a name twice at worst."""

    def __init__(self, feed: ClusterFeed) -> None:
        self._feed, self._number, self._until = feed, -1, 0.0
        self.leases, self.holders = NameText(), NameText(mark="\n")
        self.identities: dict[str, str] = {}  # the host of each line of holders, as it is written
        self.former: set[str] = set()  # the lines of those that hold nothing now
        self.whole: set[str] = set()  # identities as they are written
        self.incidents = IncidentTexts(feed.store.cluster)
        self._known = self._added = 0
        self._outdated = True

    def catch_up(self, leases: int) -> None:
        """Add what came since. `leases` is how many the cluster has."""
        number, moves = self._feed.moves.number, None
        if self._number >= 0:
            moves = self._feed.moves.since(f"{self._number}-0", None)
        for move in moves or ():
            self._add(move.keys or (), move.created)
            if move.incidents:
                self.incidents.stir()
        if moves is None and self._number >= 0:
            self.incidents.stir()
        self._number = number
        lost = moves is None or any(move.keys is None for move in moves)
        self._outdated |= lost or leases > self._known or self._added > MAX_ADDED
        if self._outdated and time.monotonic() >= self._until:
            self._make()
        self.incidents.catch_up()

    def _make(self) -> None:
        """Walk all Leases once. Those of nodes come last: they are most, and rarely looked for."""
        begun = time.monotonic()
        every = self._feed.store.snapshot()
        keys = [one.lasting.key for one in every]
        names = [f"{key.namespace}/{key.name}" for key in keys if key.namespace != NODE_LEASES]
        names += [f"{NODE_LEASES}/{key.name}" for key in keys if key.namespace == NODE_LEASES]
        there = set(names)
        gone = [str(key) for key in newest_gone(self._feed.store.cluster, MAX_GONE)]
        self.identities, self.whole = {}, set()
        for one in [one for one in every if one.lasting.kind is not Kind.HEARTBEAT]:
            self._hold(one)
        self._remember()
        self.leases = NameText([*names, *(name for name in gone if name not in there)])
        self.holders = NameText(self.identities, mark="\n")
        self.incidents.read(MAX_INCIDENTS)
        self._known, self._added, self._outdated = len(names), 0, False
        ended = time.monotonic()
        self._until = ended + COST * (ended - begun)

    def _add(self, keys: Iterable[ObjectName], created: Iterable[ObjectName]) -> None:
        before = len(self.identities)
        for key in (*keys, *created):
            if (one := self._feed.store.get(key)) is not None:
                self._hold(one)
        self.holders.add(list(self.identities)[before:])
        new = [str(key) for key in created]
        self.leases.add(new)
        self._known, self._added = self._known + len(new), self._added + len(new)

    def _hold(self, one: Tracked) -> None:
        """Note the host of its holder; a node's own heartbeat is found as a Lease."""
        lasting = one.lasting
        identity = lasting.lease.spec.holder_identity
        if identity and lasting.kind is not Kind.HEARTBEAT:
            self.former.discard(self._note(identity))

    def _remember(self) -> None:
        """Note the hosts of holders that history alone knows."""
        there = set(self.identities)
        former = newest_former_holders(self._feed.store.cluster, KINDS, MAX_GONE)
        self.former = {self._note(identity) for identity in former} - there

    def _note(self, identity: str) -> str:
        host = host_of(identity)
        line = " ".join(host.lower().split())
        self.identities.setdefault(line, host)
        self.whole.add(identity)
        return line


_names: WeakKeyDictionary[ClusterFeed, ClusterNames] = WeakKeyDictionary()


def names_of(cluster: WatchedCluster) -> ClusterNames:
    """The names as they are now."""
    feed = running_board().feeds[cluster.name]
    names = _names.setdefault(feed, ClusterNames(feed))
    names.catch_up(cluster.lease_count)
    return names
