"""Open pages that show the same get the same bytes: drawn and encoded once.

A page is drawn alone until it has all that it shows, then with the pages that show the same. It is
alone again once it says what it shows, or does not read what it is sent.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime

import msgspec
from websockets.frames import Frame, Opcode

from dashboard import clock
from dashboard.live.messages import Message, Show
from dashboard.live.page_reader import PageReader

GATHER = 0.02  # seconds in which changes gather into one frame
MAX_WAITING = 8  # messages that a page does not read before it gets everything again instead


def next_messages(reader: PageReader, now: datetime) -> list[Message]:
    """What a page lacks at this moment, encoded."""
    reader.wake.clear()
    frame, picture = reader.frame(now), reader.picture()
    groups, phases = picture or (None, None)
    parts = (frame, None if groups is None else {"groups": groups})
    texts = [msgspec.json.encode(part).decode() for part in parts if part is not None]
    return [*texts, *([] if phases is None else [phases])]


def frame_of(message: Message) -> bytes:
    """A message as the bytes that each socket gets."""
    if isinstance(message, str):
        return Frame(Opcode.TEXT, message.encode()).serialize(mask=False)
    return Frame(Opcode.BINARY, message).serialize(mask=False)


class SharedPages:
    """The groups of the pages of one cluster, and the readers: one for a group or a page alone."""

    def __init__(self) -> None:
        self.readers: set[PageReader] = set()
        self.groups: set[PageGroup] = set()
        self.turn = asyncio.Lock()  # one page at a time, so that the watch is read in between

    def __len__(self) -> int:
        """How many pages are open."""
        return len(self.readers) + sum(len(group.pages) - 1 for group in self.groups)

    async def wait(self, reader: PageReader) -> None:
        """Wait until there is something to draw, and the changes beside it."""
        await reader.wake.wait()
        await asyncio.sleep(GATHER)

    def join(self, page: "OpenPage", now: datetime) -> None:
        """Go on with the pages that show the same, if the page lacks nothing at this moment."""
        alike = page.reader.alike()
        if alike is None:
            return
        found = next((group for group in self.groups if group.alike == alike), None)
        if found is None:
            page.follow(PageGroup(self, page.reader, alike))
            return
        found.draw(now)  # to the moment of the page
        if found in self.groups and found.alike == alike:
            self.readers.discard(page.reader)
            page.follow(found)

    def end(self, group: "PageGroup") -> None:
        """Draw no more for this group."""
        self.groups.discard(group)
        self.readers.discard(group.reader)


class PageGroup:
    """Pages that show the same, and their one reader; `alike` is what they have in common."""

    def __init__(self, shared: SharedPages, reader: PageReader, alike: Hashable) -> None:
        self._shared = shared
        self.reader = reader
        self.alike: Hashable | None = alike
        self.pages: set[OpenPage] = set()
        shared.groups.add(self)
        self._task: asyncio.Task[None] | None = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while True:
                await self._shared.wait(self.reader)
                async with self._shared.turn:
                    self.draw(clock.now())
        except Exception as error:
            self._shared.end(self)
            for page in self.pages:
                page.fail(error)

    def draw(self, now: datetime) -> None:
        """Send what the pages lack."""
        messages = next_messages(self.reader, now)
        self.alike = self.reader.alike()
        frames = [frame_of(one) for one in messages] if len(self.pages) > 1 else []
        if messages:
            for page in tuple(self.pages):
                page.put(messages[page.write(frames) :])

    def remove(self, page: "OpenPage") -> None:
        """The last one ends the group."""
        self.pages.discard(page)
        if not self.pages and self._task is not None:
            self._shared.end(self)
            self._task.cancel()
            self._task = None  # its last error holds this group


class OpenPage:
    """One page, and the messages that its socket has not sent yet."""

    def __init__(
        self,
        shared: SharedPages,
        reader: PageReader,
        writes: Callable[[bytes], bool] | None = None,
    ) -> None:
        """`writes` takes a frame for its socket, if that takes it at once."""
        self._shared = shared
        self.reader = reader  # its own, or that of its group
        self._writes = writes
        self._is_idle = False  # its socket has sent all, and waits for more
        self._group: PageGroup | None = None
        self._waiting = deque[Message]()
        self._wake = asyncio.Event()
        self._failure: Exception | None = None

    async def next(self) -> Message:
        """The next message. Raises what the drawing for its group raised."""
        while not self._waiting:
            if self._failure is not None:
                raise self._failure
            if self._group is None:
                await self._draw()
            else:
                self._is_idle = True
                await self._wake.wait()
                self._is_idle = False
                self._wake.clear()
        return self._waiting.popleft()

    async def _draw(self) -> None:
        await self._shared.wait(self.reader)
        async with self._shared.turn:
            now = clock.now()
            self._waiting.extend(next_messages(self.reader, now))
            self._shared.join(self, now)

    def show(self, wanted: Show) -> None:
        """The page said what it shows."""
        if self._group is not None:
            self._go_alone(self._group)
        self.reader.show(wanted)

    def follow(self, group: PageGroup) -> None:
        """Get what this group gets."""
        self.reader, self._group = group.reader, group
        group.pages.add(self)

    def _go_alone(self, group: PageGroup) -> None:
        self.reader, self._group = group.reader.fork(), None
        self._shared.readers.add(self.reader)
        group.remove(self)
        self._wake.set()

    def write(self, frames: Sequence[bytes]) -> int:
        """Send these at once, without a turn of its own, as far as nothing waits before them.
        Returns how many were sent.
        """
        if self._writes is None or self._waiting or not self._is_idle:
            return 0
        return next((i for i, frame in enumerate(frames) if not self._writes(frame)), len(frames))

    def put(self, messages: Sequence[Message]) -> None:
        """Send these next; too many that it does not read give way to everything as it is then."""
        if len(self._waiting) + len(messages) > MAX_WAITING and self._group is not None:
            self._waiting.clear()
            self._go_alone(self._group)
            self.reader.start_over()
        elif messages:
            self._waiting.extend(messages)
            self._wake.set()

    def fail(self, error: Exception) -> None:
        """Its socket closes, and the page connects again."""
        self._failure = error
        self._wake.set()

    def leave(self) -> None:
        """Send no more."""
        if self._group is not None:
            self._group.remove(self)
        else:
            self._shared.readers.discard(self.reader)
