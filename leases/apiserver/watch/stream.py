"""The watch handler: initial events, the past from the window, then what comes, until the end.

Source: apiserver/pkg/endpoints/handlers/watch.go and pkg/storage/cacher.
"""

import asyncio
import secrets
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from leases.apiserver.codec.protobuf import STREAM_TYPE
from leases.apiserver.errors import expired, future_version, internal, not_acceptable, status_body
from leases.apiserver.http.negotiation import JSON, PROTOBUF, STREAMED, YAML, Output
from leases.apiserver.http.options import ListOptions
from leases.apiserver.http.request import PIECE_BYTES, Request
from leases.apiserver.registry.get_list import FUTURE_WAIT, parse_version
from leases.apiserver.registry.tables import check_include, convert_object, table
from leases.apiserver.resources import Resource
from leases.apiserver.storage.journal import Version
from leases.apiserver.storage.store import ObjectStore
from leases.apiserver.watch.hub import (
    BOOKMARK_EVERY,
    INITIAL_END,
    Frames,
    Hub,
    Lines,
    Render,
    Watcher,
)
from leases.wire.status import ApiError

MIN_TIMEOUT = 1800
REFERENCE = 8  # bytes
TOO_SLOW = "the events of this watch were not read in time; list again"


class Watches:
    """Serves the watches of one server."""

    def __init__(self, store: ObjectStore, hub: Hub) -> None:
        self._store = store
        self._hub = hub
        self._lines: dict[tuple[str, str, str], Lines] = {}

    async def serve(
        self,
        request: Request,
        resource: Resource,
        namespace: str,
        options: ListOptions,
        output: Output,
    ) -> None:
        """Stream events. Raises 406 and 500 before the first byte."""
        if output.media_type == YAML:
            listed = ", ".join(STREAMED)
            raise not_acceptable(f"only the following media types are accepted: {listed}")
        check_include(request.query.text("includeObject"))
        if output.convert == "PartialObjectMetadataList":
            # An event is no list: it is sent as it is.
            output = Output(output.media_type)
        since = _since(options.version)
        lines = self._lines_of(resource, output)
        watcher = self._watcher(request, resource, namespace, options, output, since, lines)
        if self._hub.closed:
            return await request.answer_text(503, "shutting down\n")
        error = await self._start_error(options, since)
        over = error is not None or (options.timeout or 0) < 0
        beginning: Iterable[bytes]
        if error is not None:
            beginning = [lines.event("ERROR", status_body(error))]
        elif over:
            beginning = []
        else:
            beginning = self._begin(watcher, options, since, resource)
        self._hub.add(watcher)
        try:
            await self._stream(request, watcher, beginning, output, ends=over)
        finally:
            self._hub.remove(watcher)

    def _lines_of(self, resource: Resource, output: Output) -> Lines:
        """What all watchers of a resource in one media type share."""
        make = Frames if output.media_type == PROTOBUF else Lines
        key = (resource.group, resource.plural, output.media_type)
        return self._lines.setdefault(key, make(resource))

    def _watcher(
        self,
        request: Request,
        resource: Resource,
        namespace: str,
        options: ListOptions,
        output: Output,
        since: int,
        lines: Lines,
    ) -> Watcher:
        timeout = float(options.timeout or 0)
        if timeout == 0:
            timeout = MIN_TIMEOUT * (1 + secrets.randbelow(1000) / 1000)
        now = asyncio.get_running_loop().time()
        include = request.query.text("includeObject")
        converted = _Converted(resource, output, include, lines) if output.convert else None
        render: Render = converted or lines
        watcher = Watcher(
            resource.plural,
            namespace,
            options.selector,
            render,
            since=max(since, 0),
            deadline=now + timeout,
        )
        if options.bookmarks:
            watcher.next_bookmark = now + BOOKMARK_EVERY
            watcher.bookmark = lines.bookmark if converted is None else converted.bookmark
        watcher.on_cut = request.scope["leaseboard.connection"].cut
        watcher.gone = partial(lines.event, "ERROR", status_body(expired(TOO_SLOW)))
        return watcher

    async def _start_error(self, options: ListOptions, since: int) -> ApiError | None:
        """Why the watch cannot start at this version. Waits for a version of the future."""
        store = self._store
        if options.initial_events:
            if since <= store.revision or await store.reached(since, within=FUTURE_WAIT):
                return None
            return future_version(since, store.revision)
        if since and since < store.floor:
            return expired(f"too old resource version: {since} ({store.floor})")
        return None

    def _begin(
        self, watcher: Watcher, options: ListOptions, since: int, resource: Resource
    ) -> Iterable[bytes]:
        """The first lines: all objects, or the events since a version. Sets `since`."""
        store = self._store
        initial = options.initial_events
        if initial is None:
            initial = since == 0
        if not initial:
            if since == 0:
                watcher.since = watcher.sent = store.revision
            else:
                return self._past(watcher, since)
            return []
        prefix = f"{watcher.namespace}/" if watcher.namespace else ""
        found = store.versions(resource.plural, prefix)
        watcher.since = watcher.sent = store.revision
        watcher.kept_bytes = REFERENCE * len(found)
        return self._initial(watcher, found, options, store.revision)

    def _past(self, watcher: Watcher, since: int) -> Iterator[bytes]:
        """The events after a version in the window."""
        watcher.since = max(since, self._store.revision)
        found = []
        for event in self._store.events_after(since):
            subject = event.current or event.previous
            in_scope = subject is not None and watcher.namespace in ("", subject.namespace)
            if event.resource == watcher.resource and in_scope:
                seen = watcher.seen(event)
                if seen is not None:
                    found.append(seen)
                    watcher.sent = event.revision
        watcher.kept_bytes = 8 * REFERENCE * len(found)  # each is a pair
        return (watcher.render(kind, version) for kind, version in found)

    def _initial(
        self, watcher: Watcher, found: list[Version], options: ListOptions, revision: int
    ) -> Iterator[bytes]:
        selects, render = watcher.selector.selects, watcher.render
        for version in found:
            if selects(version):
                yield render("ADDED", version)
        if options.initial_events and watcher.bookmark is not None:
            yield watcher.bookmark(revision, INITIAL_END)

    async def _stream(
        self,
        request: Request,
        watcher: Watcher,
        beginning: Iterable[bytes],
        output: Output,
        *,
        ends: bool,
    ) -> None:
        request.scope["leaseboard.connection"].keep_little()
        headers = request.headers(STREAM_TYPE if output.media_type == PROTOBUF else JSON)
        await request.send({"type": "http.response.start", "status": 200, "headers": headers})
        gone = asyncio.create_task(_left(request, watcher))
        try:
            for watcher.sending in _pieces(beginning):
                await _send(request, watcher)
                if watcher.given_up:
                    break
            watcher.kept_bytes = 0
            while not ends:
                await watcher.wait()
                watcher.sending = watcher.take()
                if watcher.sending:
                    await _send(request, watcher)
                elif watcher.ended:
                    break
            await request.send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()


async def _send(request: Request, watcher: Watcher) -> None:
    """Send lines as the client reads them, unless it is given up before their first byte.

    Nothing here keeps the lines: who is given up frees them at once, not when its task runs next.
    """
    connection, given_up = request.scope["leaseboard.connection"], watcher.given_up
    for start in range(0, len(watcher.sending) or 1, PIECE_BYTES):
        if connection.is_full:
            watcher.in_line, watcher.unread = start > 0, connection.unread
            try:
                await connection.room(watcher, watcher.waiting, more=watcher.kept_bytes)
            finally:
                watcher.unread = None
            if watcher.given_up and not given_up:
                return
        piece = watcher.sending[start : start + PIECE_BYTES]
        await request.send({"type": "http.response.body", "body": piece, "more_body": True})
        del piece


async def _left(request: Request, watcher: Watcher) -> None:
    """End the watch when the client goes."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    watcher.end()


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines joined to pieces worth sending. The last one may be empty: it sends the head."""
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        del line
        if size >= PIECE_BYTES:
            held, size = [b"".join(held)], 0
            yield held.pop()  # this frame keeps nothing of it
    held = [b"".join(held)]
    yield held.pop()


def _since(text: str) -> int:
    try:
        return parse_version(text)
    except ValueError as error:
        raise internal(str(error)) from None


class _Converted:
    """Renders tables or partial objects for one watch; only its first table has columns."""

    def __init__(self, resource: Resource, output: Output, include: str, lines: Lines) -> None:
        self._event = lines.event
        self._resource = resource
        self._output = output
        self._include = include
        self._columns = True

    def __call__(self, kind: str, version: Version) -> bytes:
        return self._convert(kind, self._resource.shown(version.read()), version.revision)

    def bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        """An object with nothing but this metadata; a table has a row for it."""
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        obj = {**self._resource.schema.zero, "metadata": metadata}
        return self._convert("BOOKMARK", obj, revision)

    def _convert(self, kind: str, obj: dict[str, Any], revision: int) -> bytes:
        if self._output.convert == "Table":
            meta = {"resourceVersion": str(revision)}
            shown = table(
                self._resource,
                [obj],
                meta,
                self._output.version,
                self._include,
                columns=self._columns,
            )
            self._columns = False
        else:
            shown = convert_object(self._resource, obj, self._output, self._include)
        return self._event(kind, shown)
