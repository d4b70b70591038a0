"""The embedded Lease API as a server: its port, its loop, its data directory, its beginning and its end."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from leases.apiserver.app import App
from leases.apiserver.auth import Tokens
from leases.apiserver.handlers import Handlers
from leases.apiserver.certificate import authority, ensure_certificate, server_context
from leases.apiserver.door import Door
from leases.apiserver.kubeconfig import token_in, write_kubeconfig
from leases.apiserver.namespaces import Namespaces
from leases.apiserver.patching import Patcher
from leases.apiserver.resources import served
from leases.apiserver.storage import Store
from leases.apiserver.watchers import Hub
from leases.apiserver.watching import Watches
from leases.apiserver.writing import Writer

ADMIN = "leaseboard-admin"
KEEP_ALIVE = 180
SHUTDOWN = 2


class _Protocol(HttpToolsProtocol):
    """uvicorn's HTTP, which also lets a handler cut its connection and answers methods it does not know."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["leaseboard.transport"] = self.transport  # type: ignore[typeddict-unknown-key]

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserInvalidMethodError:
            # Every method that no route allows is answered alike, so one that the parser knows will do.
            self.parser = httptools.HttpRequestParser(self)
            super().data_received(b"TRACE " + data.partition(b" ")[2])
        except httptools.HttpParserUpgrade:
            pass
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")


class _Server(uvicorn.Server):
    """uvicorn's server behind a door that takes plain connections and TLS alike."""

    def __init__(self, config: uvicorn.Config, certificate: Path) -> None:
        super().__init__(config)
        self._context = server_context(certificate)
        self._doors: list[Door] = []

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the business of whoever runs us."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        self.servers = []
        self._doors = [
            Door(each, self._protocol, self._context, backlog=self.config.backlog)
            for each in sockets or []
        ]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for door in self._doors:
            await door.close()
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        return _Protocol(self.config, self.server_state, self.lifespan.state)


class LeaseApiServer:
    """One embedded Lease API over the data directory `data`.

    `port` 0 takes a free one. Runs in the event loop that calls `start`.
    """

    def __init__(
        self,
        *,
        data: Path,
        host: str = "127.0.0.1",
        port: int = 0,
        feature_gates: frozenset[str] = frozenset(),
    ) -> None:
        self._data = data
        self._host = host
        self._port = port
        self._gates = feature_gates
        self._store: Store | None = None
        self._tokens: Tokens | None = None
        self._hub: Hub | None = None
        self._namespaces: Namespaces | None = None
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    @property
    def kubeconfig(self) -> Path:
        return self._data / "kubeconfig"

    async def start(self) -> None:
        """Bind the port, load the objects, serve. Raises OSError when the port is taken."""
        listener = _listen(self._host, self._port)
        self._port = listener.getsockname()[1]
        try:
            app = await self._build()
        except BaseException:
            listener.close()
            raise
        certificate = ensure_certificate(self._data, host=self._host)
        self._server = _Server(_config(app), certificate)
        self._serving = asyncio.create_task(
            self._server.serve(sockets=[listener]), name="lease-api"
        )
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(0.005)
        if self._serving.done():
            await self._serving
        # A client that outlives a restart of ours keeps its token.
        token = token_in(self.kubeconfig) or secrets.token_urlsafe(32)
        if self._tokens is not None:
            self._tokens.replace(ADMIN, "write", token)
        url = self.url.replace("http://", "https://", 1)
        write_kubeconfig(self.kubeconfig, url=url, authority=authority(certificate), token=token)

    async def _build(self) -> App:
        store = Store(self._data)
        self._tokens = Tokens(self._data)
        await store.open()
        self._store = store
        resources = served(self._gates)
        self._hub = hub = Hub(lambda: store.revision)
        store.publish = hub.publish
        namespaces = Namespaces(store, resources)
        await namespaces.ensure_system()
        store.forget_past()
        namespaces.resume()
        self._namespaces = namespaces
        writer = Writer(store, namespaces, self._gates)
        watches = Watches(store, hub)
        handlers = Handlers(store, watches, namespaces, writer, Patcher(writer))
        return App(resources, self._tokens, handlers)

    async def stop(self) -> None:
        """End the watches, then the connections, then the store."""
        if self._hub is not None:
            self._hub.close()
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving
            self._serving = None
        if self._namespaces is not None:
            await self._namespaces.close()
            self._namespaces = None
        if self._store is not None:
            await self._store.close()
            self._store = None
        if self._tokens is not None:
            self._tokens.close()
            self._tokens = None


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _config(app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=SHUTDOWN,
        backlog=1024,
    )
