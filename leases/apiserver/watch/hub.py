"""The open watches: encode each event once, queue it for each watcher within a bound."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from leases.apiserver.codec.go_json import dumps
from leases.apiserver.codec.protobuf import encode_event
from leases.apiserver.errors import Failed, log_failure
from leases.apiserver.http.options import Selector
from leases.apiserver.http.request import PIECE_BYTES
from leases.apiserver.resources import Resource
from leases.apiserver.storage.journal import Event, Version, version_of
from leases.listener.limits import Unread

logger = logging.getLogger(__name__)
QUEUE_BYTES = 8 * 1024 * 1024
BOOKMARK_EVERY = 60.0
# In the last two seconds before its timeout a watcher gets a bookmark about once a second.
BOOKMARK_BEFORE_END = 2.0
INITIAL_END = {"k8s.io/initial-events-end": "true"}

# Bytes of one event, from its type and the version that it shows.
Render = Callable[[str, Version], bytes]


class Lines:
    """Lines of full objects in JSON; keeps the last one, so that all watchers share its bytes."""

    def __init__(self, resource: Resource) -> None:
        self._head = resource.head
        self._resource = resource
        self._last: tuple[str, Version, bytes] | None = None

    def __call__(self, kind: str, version: Version) -> bytes:
        last = self._last
        if last is not None and last[1] is version and last[0] == kind:
            return last[2]
        line = self._line(kind, version)
        self._last = kind, version, line
        return line

    def _line(self, kind: str, version: Version) -> bytes:
        body = version.body
        if self._resource.conversion is not None:
            body = dumps(self._resource.shown(version.read()))
        return b'{"type":"%s","object":%s%s}\n' % (kind.encode(), self._head, body[1:])

    def piece(self, events: list[Event]) -> bytes:
        """The lines of events for watchers without a selector."""
        return b"".join([self(*_whole(event)) for event in events])

    def bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        metadata: dict[str, object] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        obj = {
            "kind": self._resource.kind,
            "apiVersion": self._resource.api_version,
            **self._resource.schema.zero,
            "metadata": metadata,
        }
        return self.event("BOOKMARK", obj)

    def event(self, kind: str, obj: dict[str, Any]) -> bytes:
        """An event of an object with kind and apiVersion."""
        return dumps({"type": kind, "object": obj}) + b"\n"


class Frames(Lines):
    """Frames of full objects in protobuf."""

    def _line(self, kind: str, version: Version) -> bytes:
        resource = self._resource
        head = {"kind": resource.kind, "apiVersion": resource.api_version}
        return self.event(kind, head | resource.shown(version.read()))

    def event(self, kind: str, obj: dict[str, Any]) -> bytes:
        return encode_event(kind, obj)


def _whole(event: Event) -> tuple[str, Version]:
    """The type and version of an event for a watcher without a selector."""
    if event.current is None:
        assert event.last is not None  # noqa: S101 - a deletion has a last state
        return "DELETED", event.last
    return ("ADDED" if event.previous is None else "MODIFIED"), event.current


class Watcher:
    """One open watch: a bounded queue of lines and the moment at which it ends."""

    def __init__(
        self,
        resource: str,
        namespace: str,
        selector: Selector,
        render: Render,
        *,
        since: int,
        deadline: float,
    ) -> None:
        self.resource = resource
        self.namespace = namespace
        self.selector = selector
        self.since = since
        self.sent = since
        self.deadline = deadline
        self.next_bookmark: float | None = None
        self.bookmark: Callable[..., bytes] | None = None
        self.on_cut: Callable[[], None] = lambda: None
        self.unread: Unread | None = None  # while the client must take what it has
        self.sending = b""
        self.kept_bytes = 0  # of what is not sent yet of its beginning
        self.in_line = False  # whether the client has the beginning of a line
        self.gone: Callable[[], bytes] | None = None  # the line that says so
        self.given_up = False
        self.ended = False
        self.render = render
        self.lines = render if isinstance(render, Lines) and selector.empty else None
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._awake = asyncio.Event()

    def offer(self, event: Event) -> None:
        """Queue an event if this watcher selects it."""
        if self.ended or event.revision <= self.since:
            return
        seen = self.seen(event)
        if seen is not None:
            self.push(self.render(*seen), event.revision)

    def push(self, piece: bytes, revision: int) -> None:
        """Queue lines up to a revision. Too many unread bytes end the watch."""
        self.sent = revision
        self._queue.append(piece)
        self._queued += len(piece)
        self._awake.set()
        if len(self._queue) > 1 and self._queued > QUEUE_BYTES:
            self.cut()
        elif self.unread is not None:
            self.unread.add(self, piece)

    def cut(self) -> None:
        """Drop the watch; the client must open a new one."""
        self._clear()
        self.end()
        self.on_cut()

    def give_up(self) -> bool:
        """Drop what waits for a client that is too slow, and tell it Gone; inside of a line it
        could not be told.
        """
        self.given_up = True
        if self.in_line or self.gone is None:
            self.cut()
            return False
        self._clear()
        self._queue.append(self.gone())
        self.end()
        return True

    def _clear(self) -> None:
        self._queue.clear()
        self._queued = 0
        self.sending = b""

    @property
    def waiting(self) -> Iterable[bytes]:
        """What the client has not got yet."""
        yield self.sending
        yield from self._queue

    def seen(self, event: Event) -> tuple[str, Version] | None:
        """The event through the selector: starting to match is ADDED, stopping DELETED."""
        current, previous = event.current, event.previous
        selects = self.selector.selects
        before = previous is not None and selects(previous)
        if current is None:
            last = event.last
            return ("DELETED", last) if before and last is not None else None
        if selects(current):
            return ("MODIFIED" if before else "ADDED"), current
        if before and previous is not None:
            return "DELETED", version_of(previous.read(), event.revision)
        return None

    def mark(self, revision: int, now: float) -> None:
        """Queue a bookmark when one is due and the revision is new."""
        if self.bookmark is None or self.next_bookmark is None or self.ended:
            return
        near_end = now >= self.deadline - BOOKMARK_BEFORE_END
        if (now >= self.next_bookmark or near_end) and revision > max(self.sent, self.since):
            self.next_bookmark = now + BOOKMARK_EVERY
            self.push(self.bookmark(revision), revision)

    def end(self) -> None:
        self.ended = True
        self._awake.set()

    def take(self) -> bytes:
        """What is queued first: about PIECE_BYTES of it."""
        taken, size = [], 0
        while self._queue and size < PIECE_BYTES:
            piece = self._queue.popleft()
            taken.append(piece)
            size += len(piece)
        self._queued = max(0, self._queued - size)
        if not self._queue:
            self._awake.clear()
        return taken[0] if len(taken) == 1 else b"".join(taken)

    async def wait(self) -> None:
        """Wait for bytes to take or for the end of the watch."""
        if not self._queue and not self.ended:
            await self._awake.wait()


class Hub:
    """All watchers of a server."""

    def __init__(self, revision: Callable[[], int], failed: Failed = log_failure) -> None:
        self._revision = revision
        self._failed = failed
        self._watchers: dict[tuple[str, str], set[Watcher]] = {}
        self._ticking: asyncio.TimerHandle | None = None
        self.closed = False

    def add(self, watcher: Watcher) -> None:
        self._watchers.setdefault((watcher.resource, watcher.namespace), set()).add(watcher)
        if self._ticking is None:
            self._ticking = asyncio.get_running_loop().call_later(0.5, self._tick)

    def remove(self, watcher: Watcher) -> None:
        key = (watcher.resource, watcher.namespace)
        group = self._watchers.get(key)
        if group is not None:
            group.discard(watcher)
            if not group:
                del self._watchers[key]

    def publish(self, events: list[Event]) -> None:
        """Queue events for all watchers, in order. A failure drops the watches: clients resume."""
        try:
            self._publish(events)
        except Exception as error:
            self._failed("publish", error)
            for watcher in self._all():
                watcher.cut()

    def _all(self) -> list[Watcher]:
        return [watcher for group in self._watchers.values() for watcher in group]

    def _publish(self, events: list[Event]) -> None:
        if not self._watchers:
            return
        scopes: dict[tuple[str, str], list[Event]] = {}
        for event in events:
            subject = event.current or event.previous
            namespace = "" if subject is None else subject.namespace
            for scope in {"", namespace}:
                if (event.resource, scope) in self._watchers:
                    scopes.setdefault((event.resource, scope), []).append(event)
        for scope_of, seen in scopes.items():
            _notify(self._watchers[scope_of], seen)

    def _tick(self) -> None:
        """Send bookmarks and end watches, twice a second while there are watches."""
        self._ticking = None
        loop = asyncio.get_running_loop()
        now, revision = loop.time(), self._revision()
        for watcher in self._all():
            try:
                watcher.mark(revision, now)
                if now >= watcher.deadline:
                    watcher.end()
            except Exception as error:
                self._failed("bookmarks", error)
                watcher.cut()
        if self._watchers and not self.closed:
            self._ticking = loop.call_later(0.5, self._tick)

    def close(self) -> None:
        """End every watch."""
        self.closed = True
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        for watcher in self._all():
            watcher.end()


def _notify(watchers: set[Watcher], events: list[Event]) -> None:
    """Queue events; watchers of one version without a selector share the bytes."""
    pieces: dict[Lines, bytes] = {}
    first, last = events[0].revision, events[-1].revision
    for watcher in watchers:
        if watcher.ended:
            continue
        try:
            if watcher.lines is not None and watcher.since < first:
                piece = pieces.get(watcher.lines)
                if piece is None:
                    piece = pieces[watcher.lines] = watcher.lines.piece(events)
                watcher.push(piece, last)
            else:
                for event in events:
                    watcher.offer(event)
        except Exception:
            # The other watchers must get the event.
            logger.exception("Dropping a watch of %s", watcher.resource)
            watcher.cut()
