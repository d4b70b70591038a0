"""All objects in memory, their order, the window of past events, and writes through the journal.

Everything here runs on the event loop; only the journal has a thread. Reads and watches see a write
once it is durable. A second write to the same object waits for the first.
"""

import asyncio
import bisect
import logging
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leases.apiserver.codec.decoding import aside
from leases.apiserver.errors import Failed, internal
from leases.apiserver.storage import journal
from leases.wire.status import ApiError
from leases.worker_threads import WorkerThreads

logger = logging.getLogger(__name__)
disk = WorkerThreads("lease-api-disk", 2)  # for a start and an end

WINDOW_EVENTS = 20_000
WINDOW_BYTES = 256 * 1024 * 1024
WINDOW_SECONDS = 300.0  # as etcd is compacted; in memory an event takes about 2.5 kB
KEPT_EVENTS = 1000  # also when they are older
MARK_SECONDS = 10.0  # between two notes of when a revision was written
# etcd refuses a transaction over 1.5 MiB, in which the object is protobuf. Our JSON of a Lease with
# nothing but a long holder is so much longer.
OBJECT_LIMIT = 1536 * 1024 + 170


class Plan:
    """What a write wants to do: store `obj`, or remove, or nothing (`obj` None, not `remove`)."""

    __slots__ = ("obj", "remove")

    def __init__(self, obj: dict[str, Any] | None = None, *, remove: bool = False) -> None:
        self.obj = obj
        self.remove = remove


Attempt = Callable[[journal.Version | None], Plan]


def _unheard(events: list[journal.Event]) -> None:
    """Drop events until a hub takes them."""
    del events


class ObjectStore:
    """`revision` is the last durable one; `floor` the oldest from which a watch can resume."""

    def __init__(
        self, directory: Path, failed: Failed, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._journal = journal.Journal(directory / journal.FILE_NAME)
        self._commits = journal.Commits(self._journal, self._settle, failed)
        self._objects: dict[journal.Key, journal.Version] = {}
        self._order: dict[str, list[str]] = {}
        self._window: deque[journal.Event] = deque()
        self._window_bytes = 0
        self._written: deque[tuple[float, int]] = deque()  # when a revision was the last one
        self._assigned = 0
        self._pending: dict[journal.Key, list[asyncio.Future[None]]] = {}
        self._advanced = asyncio.Event()
        self.revision = 0
        self.floor = 0
        self.publish: Callable[[list[journal.Event]], None] = _unheard

    async def open(self) -> None:
        """Load everything. Raises sqlite3.Error."""
        revision, rows = await disk.run(self._journal.open)
        for row in rows:
            self._objects[row.resource, row.namespace, row.name] = _loaded(row)
        for resource in {row.resource for row in rows}:
            self._order[resource] = sorted(
                version.key for (kind, _, _), version in self._objects.items() if kind == resource
            )
        # The very first revision is 2: from a resourceVersion of 1 nothing can be resumed.
        self.revision = self.floor = self._assigned = max(revision, 1)

    async def close(self) -> None:
        self._commits.flush()
        await disk.run(self._journal.close)

    def forget_past(self) -> None:
        """Drop the window of past events."""
        self._window.clear()
        self._window_bytes = 0
        self.floor = self.revision

    def get(self, resource: str, namespace: str, name: str) -> journal.Version | None:
        return self._objects.get((resource, namespace, name))

    def keys(self, resource: str, prefix: str = "") -> list[str]:
        """The keys of a resource in order, or those under `prefix` ("namespace/")."""
        order = self._order.get(resource, [])
        if not prefix:
            return order
        start = bisect.bisect_left(order, prefix)
        end = bisect.bisect_left(order, prefix + "\U0010ffff", lo=start)
        return order[start:end]

    def versions(self, resource: str, prefix: str = "") -> list[journal.Version]:
        """The objects as they are now, in order."""
        objects = self._objects
        return [objects[_key(resource, key)] for key in self.keys(resource, prefix)]

    def versions_at(self, resource: str, prefix: str, revision: int) -> list[journal.Version]:
        """The objects as they were at a revision not below `floor`, in order."""
        changed: dict[str, journal.Version | None] = {}
        for event in reversed(self._window):
            if event.revision <= revision:
                break
            subject = event.current or event.previous
            if event.resource == resource and subject is not None:
                changed[subject.key] = event.previous
        if not changed:
            return self.versions(resource, prefix)
        kept = {version.key: version for version in self.versions(resource, prefix)}
        for key, version in changed.items():
            if key.startswith(prefix):
                kept.pop(key, None)
                if version is not None:
                    kept[key] = version
        return [kept[key] for key in sorted(kept)]

    def events_after(self, revision: int) -> list[journal.Event]:
        """Events of all resources after a revision not below `floor`, oldest first."""
        found = []
        for event in reversed(self._window):
            if event.revision <= revision:
                break
            found.append(event)
        found.reverse()
        return found

    def holds_any(self, resource: str, namespace: str) -> bool:
        """Whether the namespace has, or is about to get, an object of the resource."""
        waiting = any(key[:2] == (resource, namespace) for key in self._pending)
        return waiting or bool(self.keys(resource, f"{namespace}/"))

    async def reached(self, revision: int, *, within: float) -> bool:
        """Wait until the store has reached a revision; False after that many seconds."""
        try:
            async with asyncio.timeout(within):
                while self.revision < revision:
                    await self._advanced.wait()
        except TimeoutError:
            return False
        return True

    async def write(
        self, resource: str, namespace: str, name: str, attempt: Attempt, *, size: int = 0
    ) -> journal.Version | None:
        """Call `attempt` with the present version and carry out its plan.

        Returns the version that is stored then; None after a removal. Raises what `attempt` raises.
        An attempt that processes many bytes (`size`) runs in a thread.
        """
        key = (resource, namespace, name)
        await self._turn(key)
        existing = self._objects.get(key)
        self._pending[key] = []
        try:
            both = size + len(existing.body) if size and existing else size
            plan = await aside(both, attempt, existing)
        finally:
            self._release(key)
        if plan.obj is None and not plan.remove:
            return existing
        answer: asyncio.Future[journal.Version | None] = asyncio.get_running_loop().create_future()

        def done(version: journal.Version | None, error: ApiError | None) -> None:
            if answer.done():
                return  # the client is gone
            if error is None:
                answer.set_result(version)
            else:
                answer.set_exception(error)

        self._begin(key, existing, plan.obj, done)
        return await answer

    async def _turn(self, key: journal.Key) -> None:
        """Wait until no write to an object is under way."""
        while (waiting := self._pending.get(key)) is not None:
            turn = asyncio.get_running_loop().create_future()
            waiting.append(turn)
            await turn

    def _release(self, key: journal.Key) -> None:
        for turn in self._pending.pop(key):
            if not turn.done():
                turn.set_result(None)

    async def settle(self, namespace: str) -> None:
        """Wait for the writes that are under way in a namespace."""
        for key in [key for key in self._pending if key[1] == namespace]:
            await self._turn(key)

    def _begin(
        self,
        key: journal.Key,
        existing: journal.Version | None,
        obj: dict[str, Any] | None,
        done: journal.Done,
    ) -> None:
        """Begin to write an object (None: remove it) to which no write is under way.

        Raises 500 when it is too large.
        """
        revision = self._assigned + 1
        version = None if obj is None else journal.version_of(obj, revision, existing)
        if version is not None and len(version.body) > OBJECT_LIMIT:
            raise internal("etcdserver: request is too large")
        self._assigned = revision
        self._pending[key] = []
        self._commits.add(journal.Write(key, _event(key[0], revision, existing, version), done))

    def _settle(self, writes: list[journal.Write], error: Exception | None) -> None:
        """Finish writes, durable or failed: answer the writers, then publish to watchers."""
        for write in writes:
            if error is None:
                self._place(write.key, write.event.current)
                self._remember(write.event)
                self.revision = write.event.revision
            self._release(write.key)
        self._forget_old()
        failed = None if error is None else internal(f"the write could not be stored: {error}")
        for write in writes:
            try:
                write.done(write.event.current, failed)
            except Exception:
                # The other writers must get their answers.
                logger.exception("The callback of a write of %s failed", write.key)
        if failed is not None:
            return
        self._advanced.set()
        self._advanced.clear()
        self.publish([write.event for write in writes])

    def _place(self, key: journal.Key, version: journal.Version | None) -> None:
        order = self._order.setdefault(key[0], [])
        path = f"{key[1]}/{key[2]}" if key[1] else key[2]
        if version is None:
            self._objects.pop(key, None)
            index = bisect.bisect_left(order, path)
            if index < len(order) and order[index] == path:
                del order[index]
        else:
            if key not in self._objects:
                bisect.insort(order, path)
            self._objects[key] = version

    def _remember(self, event: journal.Event) -> None:
        self._window.append(event)
        self._window_bytes += _weight(event)
        while len(self._window) > WINDOW_EVENTS or self._window_bytes > WINDOW_BYTES:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        dropped = self._window.popleft()
        self._window_bytes -= _weight(dropped)
        self.floor = dropped.revision

    def _forget_old(self) -> None:
        """Drop the events that are too old, but for the newest KEPT_EVENTS."""
        now, marks = self._monotonic(), self._written
        if not marks or now - marks[-1][0] >= MARK_SECONDS:
            marks.append((now, self.revision))
        while len(marks) > 1 and marks[1][0] <= now - WINDOW_SECONDS:
            marks.popleft()
        old = marks[0][1] if marks[0][0] <= now - WINDOW_SECONDS else 0
        while len(self._window) > KEPT_EVENTS and self._window[0].revision <= old:
            self._drop_oldest()


def _key(resource: str, path: str) -> journal.Key:
    namespace, _, name = path.rpartition("/")
    return resource, namespace, name


def _loaded(row: journal.JournalRow) -> journal.Version:
    version = journal.Version(row.namespace, row.name, "", row.revision, None, row.body or b"")
    metadata = version.read()["metadata"]
    return journal.Version(
        row.namespace,
        row.name,
        metadata.get("uid", ""),
        row.revision,
        metadata.get("labels"),
        version.body,
    )


def _event(
    resource: str, revision: int, existing: journal.Version | None, version: journal.Version | None
) -> journal.Event:
    last = None
    if version is None and existing is not None:
        last = journal.version_of(journal.with_revision(existing.read(), revision), revision)
    return journal.Event(resource, revision, version, existing, last)


def _weight(event: journal.Event) -> int:
    subject = event.current or event.last
    return len(subject.body) if subject else 0
