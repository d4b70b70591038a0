"""Who watches: each event is encoded once for all, queued per watcher within a bound, and told in
order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from leases.apiserver.gojson import dumps
from leases.apiserver.options import Selector
from leases.apiserver.records import Event, Version, version_of
from leases.apiserver.resources import Resource

QUEUE_EVENTS = 10_000
QUEUE_BYTES = 8 * 1024 * 1024
BOOKMARK_EVERY = 60.0
# In the last two seconds before its timeout a watcher is told where it stands, about once a second.
BOOKMARK_BEFORE_END = 2.0
INITIAL_END = {"k8s.io/initial-events-end": "true"}

# Bytes of one event, from its type and the version that it shows.
Render = Callable[[str, Version], bytes]


class Lines:
    """The lines of full objects, made once per event and kept while the event is being told."""

    def __init__(self, resource: Resource) -> None:
        self._head = resource.head
        self._resource = resource
        self._last: tuple[str, Version, bytes] | None = None

    def __call__(self, kind: str, version: Version) -> bytes:
        last = self._last
        if last is not None and last[1] is version and last[0] == kind:
            return last[2]
        line = b'{"type":"%s","object":%s%s}\n' % (kind.encode(), self._head, version.body[1:])
        self._last = kind, version, line
        return line

    def bookmark(self, revision: int, annotations: dict[str, str] | None) -> bytes:
        metadata: dict[str, object] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        spec = dict.fromkeys(self._resource.schema.fields["spec"].kind.required, "")  # type: ignore[attr-defined]
        obj = {
            "kind": self._resource.kind,
            "apiVersion": self._resource.api_version,
            "metadata": metadata,
            "spec": spec,
        }
        return dumps({"type": "BOOKMARK", "object": obj}) + b"\n"


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
        self.told = since
        self.deadline = deadline
        self.next_bookmark: float | None = None
        self.bookmark: Callable[..., bytes] | None = None
        self.on_overflow: Callable[[], None] = lambda: None
        self.ended = False
        self.render = render
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._awake = asyncio.Event()

    def offer(self, event: Event) -> None:
        """Take an event, if it is one for this watcher. Too many unread ones end the watch."""
        if self.ended or event.revision <= self.since:
            return
        seen = self.seen(event)
        if seen is None:
            return
        self.told = event.revision
        self._push(self.render(*seen))

    def _push(self, line: bytes) -> None:
        self._queue.append(line)
        self._queued += len(line)
        self._awake.set()
        if len(self._queue) > 1 and (len(self._queue) > QUEUE_EVENTS or self._queued > QUEUE_BYTES):
            self._queue.clear()
            self.end()
            self.on_overflow()

    def seen(self, event: Event) -> tuple[str, Version] | None:
        """The event through the selector: starting to match is ADDED, stopping DELETED."""
        current, previous = event.current, event.previous
        selects = self.selector.selects
        before = previous is not None and selects(
            previous.namespace, previous.name, previous.labels
        )
        if current is None:
            last = event.last
            return ("DELETED", last) if before and last is not None else None
        if selects(current.namespace, current.name, current.labels):
            return ("MODIFIED" if before else "ADDED"), current
        if before and previous is not None:
            return "DELETED", version_of(previous.read(), event.revision)
        return None

    def mark(self, revision: int, now: float) -> None:
        """Tell how far the watch has come, when that is due and news."""
        if self.bookmark is None or self.next_bookmark is None or self.ended:
            return
        near_end = now >= self.deadline - BOOKMARK_BEFORE_END
        if (now >= self.next_bookmark or near_end) and revision > max(self.told, self.since):
            self.told = revision
            self.next_bookmark = now + BOOKMARK_EVERY
            self._push(self.bookmark(revision))

    def end(self) -> None:
        self.ended = True
        self._awake.set()

    def take(self) -> bytes:
        """Everything queued, as one piece."""
        piece = b"".join(self._queue)
        self._queue.clear()
        self._queued = 0
        self._awake.clear()
        return piece

    async def wait(self) -> None:
        """Until there is something to take or the watch has ended."""
        if not self._queue and not self.ended:
            await self._awake.wait()


class Hub:
    """All watchers of a server."""

    def __init__(self, revision: Callable[[], int]) -> None:
        self._revision = revision
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

    def publish(self, event: Event) -> None:
        subject = event.current or event.previous
        namespace = "" if subject is None else subject.namespace
        for scope in ("", namespace) if namespace else ("",):
            for watcher in self._watchers.get((event.resource, scope), ()):
                watcher.offer(event)

    def _tick(self) -> None:
        """Twice a second while anybody watches: bookmarks and timeouts."""
        self._ticking = None
        loop = asyncio.get_running_loop()
        now, revision = loop.time(), self._revision()
        for group in list(self._watchers.values()):
            for watcher in group:
                watcher.mark(revision, now)
                if now >= watcher.deadline:
                    watcher.end()
        if self._watchers and not self.closed:
            self._ticking = loop.call_later(0.5, self._tick)

    def close(self) -> None:
        """End every watch."""
        self.closed = True
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        for group in list(self._watchers.values()):
            for watcher in group:
                watcher.end()
