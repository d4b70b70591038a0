"""The two sockets of a cluster: one for Leaseboard's pages, one for other programs."""

from __future__ import annotations

import asyncio

import msgspec
from channels.db import database_sync_to_async
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error as DatabaseError

from dashboard import clock
from dashboard.access.rights.rights import AccessRefused, Right, WallRight, right_of_socket
from dashboard.board import running_board
from dashboard.live.messages import BadShow, Show, read_show
from dashboard.live.page_reader import PageReader
from dashboard.live.program_refusal import answer_401, sends_token
from dashboard.live.publisher import ClusterHub, FeedReader
from dashboard.live.socket_share import TOO_MANY
from dashboard.parts.kept.node_book import Grouping

REFUSED = 4403  # the page must not try again
UNKNOWN = 4404
BAD_MESSAGE = 4400
FAILED = 1011
BUSY = 1013  # the page tries again
GATHER = 0.02  # seconds in which changes gather into one frame


class ClusterConsumer(AsyncWebsocketConsumer):
    """Open for whoever may read the cluster, and run one task that sends."""

    right: Right
    ended = ""  # why the right to read has ended

    async def connect(self) -> None:
        # Accept first: a browser sees 1006 instead of the code when a socket is refused.
        late = sends_token(self.scope)
        if not late:
            await self.accept()
        name = self.scope["url_route"]["kwargs"]["cluster"]
        try:
            self.right = await database_sync_to_async(right_of_socket)(self.scope, name)
        except AccessRefused as error:
            if late:
                await answer_401(self.base_send, str(error))
                raise StopConsumer from error
            await self.close(code=REFUSED, reason=str(error))
            return
        except DatabaseError:
            if late:
                await self.accept()  # dashboard.live.origin then closes it with a reason
            raise
        if late:
            await self.accept()
        running = running_board()
        hub = running.publisher.hubs.get(name)
        if hub is None:
            await self.close(code=UNKNOWN)
            return
        if not running.publisher.sockets.take(self.right):
            await self.close(code=BUSY, reason=TOO_MANY)
            return
        if isinstance(self.right, WallRight):
            running.link_use.note(self.right.link_id)
        self.join(hub)
        self.sender = asyncio.create_task(self._relay_or_close(hub))
        self.grant = running.rights.add(self.right, self._end)

    async def disconnect(self, code: int) -> None:
        sender: asyncio.Task[None] | None = getattr(self, "sender", None)
        if sender is not None:
            running_board().rights.remove(self.grant)
            running_board().publisher.sockets.give_back(self.right)
            self.leave()
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)

    def _end(self, reason: str) -> None:
        """Stop sending, then close with the reason."""
        self.ended = reason
        self.leave()
        self.sender.cancel()

    async def _relay_or_close(self, hub: ClusterHub) -> None:
        """Relay until the right ends; close after a failure, so that the page connects again."""
        try:
            await self.relay(hub)
        except asyncio.CancelledError:
            if not self.ended:
                raise
            await self.close(code=REFUSED, reason=self.ended)
        except OSError:  # the browser went away in the middle of a frame
            pass
        except Exception as error:
            hub.failed("socket", error)
            await self.close(code=FAILED)

    def join(self, hub: ClusterHub) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        raise NotImplementedError

    async def relay(self, hub: ClusterHub) -> None:
        raise NotImplementedError


class PageConsumer(ClusterConsumer):
    """Send one open page what changes in what it shows."""

    WALL_PARTS = frozenset({"tile"})

    def join(self, hub: ClusterHub) -> None:
        self.hub = hub
        self.reader = PageReader(hub, running_board().drawings)
        hub.pages.add(self.reader)

    def leave(self) -> None:
        self.hub.pages.discard(self.reader)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if not hasattr(self, "reader") or self.ended:
            return
        try:
            show = read_show(text_data or "")
        except BadShow as error:
            await self.close(code=BAD_MESSAGE, reason=str(error)[:120])
            return
        if isinstance(self.right, WallRight):
            tiles = {part: names for part, names in show.show.items() if part in self.WALL_PARTS}
            # A wall shows states alone, no zone and no pool.
            field: Grouping | None = "none" if show.field else None
            show = Show(show=tiles, feed=show.feed, field=field, jumps=show.jumps)
        self.reader.show(show)

    async def relay(self, hub: ClusterHub) -> None:
        while True:
            await self.reader.wake.wait()
            await asyncio.sleep(GATHER)
            async with hub.turn:
                self.reader.wake.clear()
                frame = self.reader.frame(clock.now())
            if frame is not None:
                await self.send(text_data=msgspec.json.encode(frame).decode())
            picture = self.reader.picture()
            if picture is not None:
                groups, phases = picture
                if groups is not None:
                    await self.send(text_data=msgspec.json.encode({"groups": groups}).decode())
                await self.send(bytes_data=phases)


class ChangesConsumer(ClusterConsumer):
    """Send the public feed: every change as JSON, numbered."""

    def join(self, hub: ClusterHub) -> None:
        self.hub = hub
        self.reader = FeedReader()
        self.reader.put(hub.hello(clock.now()))
        hub.feeds.add(self.reader)

    def leave(self) -> None:
        self.hub.feeds.discard(self.reader)

    async def relay(self, hub: ClusterHub) -> None:
        while True:
            await self.reader.wake.wait()
            self.reader.wake.clear()
            while self.reader.frames:
                await self.send(text_data=self.reader.frames.popleft())


class UnknownConsumer(AsyncWebsocketConsumer):
    """Close every socket at a path that has none."""

    async def connect(self) -> None:
        await self.accept()
        await self.close(code=UNKNOWN)
