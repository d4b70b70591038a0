"""The sockets of a cluster and of all of them: who may open them, how many, what they carry.

A browser's script could not read such an answer, but no browser sends a token.

Channels' OriginValidator judges the Origin, Django judges the Host. Channels' own refusal is an
HTTP 403, which a browser's script cannot tell from a lost connection; here the socket closes with
a code and a reason.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Generic, Protocol, TypeVar, cast

import msgspec
from channels.db import database_sync_to_async
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error as DatabaseError
from django.http import QueryDict
from django.urls import path, re_path

from dashboard import clock
from dashboard.access.api_tokens import CONTENT_TYPE, INVALID_TOKEN, problem_body
from dashboard.access.known_rights import Right, WallRight
from dashboard.access.rights import AccessRefused, right_of_socket
from dashboard.board import Board, running_board
from dashboard.live.fleet import NEWS, FleetHub, FleetReader, NewsReader
from dashboard.live.messages import BadShow, Show, read_show
from dashboard.live.page_reader import PageReader
from dashboard.live.publisher import TOO_MANY, ClusterHub, FeedReader, Publisher
from dashboard.live.shared_drawings import Drawings
from dashboard.live.shared_pages import OpenPage
from dashboard.pages.fleet_wall import WALL
from dashboard.watched_cluster import Grouping
from leases.listener.protocol import FRAMES

EXTENSION = "websocket.http.response"  # of ASGI; not every server has it


def sends_token(scope: Mapping[str, Any]) -> bool:
    sent = dict(scope["headers"]).get(b"authorization", b"").lower()
    return sent.startswith(b"bearer ") and EXTENSION in (scope.get("extensions") or {})


async def answer_401(send: Callable[[Any], Any], reason: str) -> None:
    """Answer the handshake."""
    body = problem_body(401, reason)
    headers = [
        (b"content-type", CONTENT_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"www-authenticate", INVALID_TOKEN.encode()),
    ]
    await send({"type": f"{EXTENSION}.start", "status": 401, "headers": headers})
    await send({"type": f"{EXTENSION}.body", "body": body})


REFUSED = 4403  # the page must not try again
UNKNOWN = 4404
BAD_MESSAGE = 4400
FAILED = 1011
BUSY = 1013  # the page tries again
CLOSE_SECONDS = 2.0  # in which the other end must make room for the close frame
NOT_FOR_WALLS = "A wall link opens its wall alone. Sign in, or send an API token, to read the feed."


class LiveBoard(Board, Protocol):
    """The running process as the sockets see it."""

    @property
    def publisher(self) -> Publisher: ...
    @property
    def drawings(self) -> Drawings: ...


def _live_board() -> LiveBoard:
    return cast("LiveBoard", running_board())


Hub = TypeVar("Hub", ClusterHub, FleetHub)


class BoardConsumer(AsyncWebsocketConsumer, Generic[Hub]):
    """Open for whoever may read, and run one task that sends."""

    FOR_WALLS = False  # whether a wall link may open it
    right: Right
    ended = ""  # why the right to read has ended
    closing = False
    given_up = False  # the other end takes no close frame

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.open = ExitStack()  # gives back what the connection took
        self.sender: asyncio.Task[None] | None = None
        self.dispatching = asyncio.current_task()
        self.closed = asyncio.Event()
        try:
            await super().__call__(scope, receive, send)
        except asyncio.CancelledError:
            if not self.given_up:
                raise
        finally:  # also when a handler raises: Channels then calls no `disconnect`
            self.open.close()
            sender, self.sender = self.sender, None  # its last error holds this consumer
            if sender is not None:
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)

    async def connect(self) -> None:
        # Accept first: a browser sees 1006 instead of the code when a socket is refused.
        late = sends_token(self.scope)
        if not late:
            await self.accept()
        name = self.scope["url_route"]["kwargs"].get("cluster", "")
        try:
            self.right = await database_sync_to_async(right_of_socket)(self.scope, name)
            if isinstance(self.right, WallRight) and not self.FOR_WALLS:
                raise AccessRefused(NOT_FOR_WALLS)
        except AccessRefused as error:
            if late:
                await answer_401(self.base_send, str(error))
                raise StopConsumer from error
            await self.close(code=REFUSED, reason=str(error))
            return
        except DatabaseError:
            if late:
                await self.accept()  # dashboard.live.consumers then closes it with a reason
            raise
        if late:
            await self.accept()
        hub = self.find_hub(name)
        if hub is None:
            await self.close(code=UNKNOWN)
        elif not self._take_part(hub):
            await self.close(code=BUSY, reason=TOO_MANY)

    def _take_part(self, hub: Hub) -> bool:
        """Count the socket and begin to send; False when its owner has too many."""
        running = _live_board()
        if not running.publisher.sockets.take(self.right):
            return False
        self.open.callback(running.publisher.sockets.give_back, self.right)
        if isinstance(self.right, WallRight):
            running.link_use.note(self.right)
        self.join(hub)
        self.open.callback(self.leave)
        hub.ends.add(self._end)
        self.open.callback(hub.ends.discard, self._end)
        self.sender = asyncio.create_task(self._relay_or_close(hub))
        self.open.callback(running.rights.remove, running.rights.add(self.right, self._end))
        return True

    async def close(self, code: int | bool | None = None, reason: str | None = None) -> None:
        """Only the first call counts: a second close frame is an error."""
        if not self.closing:
            self.closing = True
            await super().close(code=code, reason=reason)
            self.closed.set()

    def _end(self, reason: str) -> None:
        """Stop sending, then close with the reason."""
        self.ended = reason
        self.leave()
        if self.sender is not None:
            self.sender.cancel()

    async def _relay_or_close(self, hub: Hub) -> None:
        """Relay until the right ends; close after a failure, so that the page connects again."""
        try:
            await self.relay(hub)
        except asyncio.CancelledError:
            if not self.ended:
                raise
            await self._close_ended()
        except OSError:  # the browser went away in the middle of a frame
            pass
        except Exception as error:
            if self.closing:
                return
            hub.failed("socket", error)
            await self.close(code=FAILED)

    async def _close_ended(self) -> None:
        """Hang up on who does not read: nothing that waits for him may be read later."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.close(code=REFUSED, reason=self.ended)
                await self.closed.wait()
        except TimeoutError:
            self.given_up = True
            if self.dispatching is not None:
                self.dispatching.cancel()

    def find_hub(self, cluster: str) -> Hub | None:
        raise NotImplementedError

    def join(self, hub: Hub) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        raise NotImplementedError

    async def relay(self, hub: Hub) -> None:
        raise NotImplementedError


class ClusterConsumer(BoardConsumer[ClusterHub]):
    """About one cluster."""

    def find_hub(self, cluster: str) -> ClusterHub | None:
        return _live_board().publisher.hubs.get(cluster)


class PageConsumer(ClusterConsumer):
    """Send one open page what changes in what it shows."""

    FOR_WALLS = True
    WALL_PARTS = frozenset({"tile"})

    def join(self, hub: ClusterHub) -> None:
        self.hub = hub
        of_wall = isinstance(self.right, WallRight)
        query = self.scope["query_string"].decode("latin-1") if of_wall else None
        reader = PageReader(hub, _live_board().drawings, wall=query)
        extensions: Mapping[str, Any] = self.scope.get("extensions") or {}
        self.page = OpenPage(hub.open_pages, reader, extensions.get(FRAMES, {}).get("write"))
        hub.join(reader)

    def leave(self) -> None:
        self.page.leave()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if not hasattr(self, "page") or self.ended or self.closing:
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
        self.page.show(show)

    async def relay(self, hub: ClusterHub) -> None:
        while True:
            message = await self.page.next()
            if isinstance(message, bytes):
                await self.send(bytes_data=message)
            else:
                await self.send(text_data=message)


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


class FleetConsumer(BoardConsumer[FleetHub]):
    """Send one open page of all clusters, or the wall of several, what changes in them."""

    FOR_WALLS = True

    def find_hub(self, cluster: str) -> FleetHub:
        return _live_board().publisher.fleet

    reader: FleetReader

    def join(self, hub: FleetHub) -> None:
        self.hub = hub
        asked = QueryDict(self.scope["query_string"])
        wall = self.right.clusters if isinstance(self.right, WallRight) else ()
        of_wall = isinstance(self.right, WallRight) or WALL in asked
        if NEWS in asked and not of_wall:
            self.reader = NewsReader(hub)
        else:
            self.reader = FleetReader(hub, wall if of_wall else None)
        hub.join(self.reader)

    def leave(self) -> None:
        self.hub.pages.discard(self.reader)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if not hasattr(self, "reader") or self.ended or self.closing:
            return
        try:
            self.reader.show(read_show(text_data or ""))
        except BadShow as error:
            await self.close(code=BAD_MESSAGE, reason=str(error)[:120])

    async def relay(self, hub: FleetHub) -> None:
        while True:
            await self.reader.wake.wait()
            self.reader.wake.clear()
            frame = self.reader.frame(clock.now())
            if frame is not None:
                await self.send(text_data=msgspec.json.encode(frame).decode())


class UnknownConsumer(AsyncWebsocketConsumer):
    """Close every socket at a path that has none."""

    async def connect(self) -> None:
        await self.accept()
        await self.close(code=UNKNOWN)


# Django's types know views only; Channels routes applications by the same patterns.
urlpatterns: list[Any] = [
    path("c/<slug:cluster>/live/page/", cast("Any", PageConsumer.as_asgi())),
    path("c/<slug:cluster>/live/changes/", cast("Any", ChangesConsumer.as_asgi())),
    path("live/fleet/", cast("Any", FleetConsumer.as_asgi())),
    re_path(r"", cast("Any", UnknownConsumer.as_asgi())),
]
