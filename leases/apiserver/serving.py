"""Start and stop the embedded Lease API over a data directory and a port."""

import asyncio
import secrets
import socket
import sqlite3
import ssl
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from leases.apiserver.app import App, Handlers
from leases.apiserver.auth import Tokens
from leases.apiserver.election import ElectionController
from leases.apiserver.errors import Failed, Keep, log_failure, run_once
from leases.apiserver.http.port import (
    LIMITS,
    Server,
    certificate_for,
    check_certificate,
    explained,
    tls_context,
    token_in,
    write_kubeconfig,
)
from leases.apiserver.patch.dispatch import Patcher
from leases.apiserver.registry.create_update import Writer
from leases.apiserver.registry.events import EventExpiry
from leases.apiserver.registry.get_list import served
from leases.apiserver.registry.namespaces import Namespaces
from leases.apiserver.resources import CLE_GATE
from leases.apiserver.storage.journal import FILE_NAME, Event, connect
from leases.apiserver.storage.store import ObjectStore, disk
from leases.apiserver.watch.hub import Hub
from leases.apiserver.watch.stream import Watches
from leases.listener.limits import allow_open_files
from leases.listener.server import listen
from leases.private_files import ProcessLock, looking
from leases.wire.status import Unauthorized

ADMIN = "leaseboard-admin"
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - translated, not bound


def lock_of(data: Path) -> ProcessLock:
    """Two servers over one directory would give the same resourceVersions."""
    return ProcessLock(
        data / "lease_api.lock",
        refusal=f"Another process serves the Lease API of {data}: stop it, or choose another "
        "LEASEBOARD_DATA.",
    )


def check_data(data: Path) -> None:
    """Raises InUse or CannotStart for a directory that no Lease API could serve now."""
    with explained(data):
        lock = lock_of(data)
        lock.take()
        try:
            check_certificate(data)
            connect(data / FILE_NAME).close()
        finally:
            lock.release()


def examine_data(data: Path) -> None:
    """Raises CannotStart for files that no Lease API could use. Changes and makes nothing."""
    with explained(data):
        check_certificate(data)
        file = data / FILE_NAME
        if file.exists():
            with closing(sqlite3.connect(looking(file), uri=True)) as there:
                there.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()


class LeaseApiServer:
    """One embedded Lease API over the data directory `data`.

    `port` 0 takes a free one. Runs in the event loop that calls `start`; HTTP and HTTPS on one
    port. `keep` runs its task, `failed` gets the errors that it survives.
    """

    def __init__(
        self,
        *,
        data: Path,
        host: str = "127.0.0.1",
        port: int = 0,
        feature_gates: frozenset[str] = frozenset(),
        keep: Keep = run_once,
        failed: Failed = log_failure,
    ) -> None:
        self._data = data
        self._host = host
        self._port = port
        self._gates = feature_gates
        self._keep = keep
        self._failed = failed
        self._lock = lock_of(data)
        self._store: ObjectStore | None = None
        self._tokens: Tokens | None = None
        self._hub: Hub | None = None
        self._namespaces: Namespaces | None = None
        self._expiry: EventExpiry | None = None
        self._elections: ElectionController | None = None
        self._electing: asyncio.Task[None] | None = None
        self._server: Server | None = None
        self._listener: socket.socket | None = None
        self._ending = False
        self.serving: asyncio.Task[None] | None = None  # ends with `stop`

    @property
    def url(self) -> str:
        """The URL for this machine, without TLS."""
        return f"http://{self._address()}"

    @property
    def kubeconfig(self) -> Path:
        return self._data / "kubeconfig"

    def _address(self) -> str:
        host = _EVERYWHERE.get(self._host, self._host)
        return f"[{host}]:{self._port}" if ":" in host else f"{host}:{self._port}"

    async def start(self) -> None:
        """Bind the port, load the objects, serve.

        Raises InUse when another process serves the data, OSError when the port is taken, and
        CannotStart when something in the data directory cannot be used.
        """
        with explained(self._data):
            self._lock.take()
            limits = LIMITS.within(allow_open_files())
            listener = None
            try:
                listener = listen(self._host, self._port)
                self._port = listener.getsockname()[1]
                app, tls = await self._load()
            except BaseException:
                if listener is not None:
                    listener.close()
                await self._close()
                raise
        make = partial(Server, app, limits, tls, self._failed)
        self._server, self._listener = server, _ = make(), listener
        self.serving = self._keep("lease-api", partial(self._serve, make), may_end=self._may_end)
        if (elections := self._elections) is not None:
            self._electing = self._keep("elections", elections.run, may_end=self._may_end)
        await server.ready.wait()

    async def _serve(self, make: Callable[[], Server]) -> None:
        """Serve until `stop`; when restarted after a failure, on the same port."""
        if self._server is None or self._listener is None:
            self._server, self._listener = make(), listen(self._host, self._port)
        server, listener = self._server, self._listener
        try:
            await server.serve([listener])
        finally:
            self._listener = None
            if not server.should_exit:
                server.force_exit = True
                await server.shutdown([listener])
            listener.close()

    def _may_end(self) -> bool:
        return self._ending

    async def _load(self) -> tuple[App, ssl.SSLContext]:
        """Load the data directory."""
        now = datetime.now(UTC)
        certificate = await disk.run(certificate_for, self._data, self._host, now=now)
        app = await self._build()
        self._write_kubeconfig(certificate)
        return app, tls_context(self._data)

    async def _build(self) -> App:
        resources = served(self._gates)
        self._tokens = Tokens(self._data)
        self._store = store = ObjectStore(self._data, self._failed)
        await store.open()
        self._hub = hub = Hub(lambda: store.revision, self._failed)
        store.publish = hub.publish
        self._namespaces = namespaces = Namespaces(store, resources, self._failed)
        await namespaces.ensure_system()
        store.forget_past()
        namespaces.resume()
        self._expiry = EventExpiry(store, self._failed)
        writer = Writer(store, namespaces, self._gates)
        if CLE_GATE in self._gates:
            self._elections = ElectionController(store, writer, namespaces, self._failed)
            store.publish = partial(_publish, hub, self._elections)
        handlers = Handlers(store, Watches(store, hub), namespaces, writer, Patcher(writer))
        return App(resources, self._tokens, handlers)

    def _write_kubeconfig(self, certificate: bytes) -> None:
        """Write it with the token of the last run if that is valid, so that copies keep working."""
        if self._tokens is None:
            return
        token = token_in(self.kubeconfig)
        try:
            known = token is not None and self._tokens.user(f"Bearer {token}").name == ADMIN
        except Unauthorized:
            known = False
        if token is None or not known:
            token = secrets.token_urlsafe(32)
            self._tokens.replace(ADMIN, "write", token)
        server = f"https://{self._address()}"
        write_kubeconfig(self.kubeconfig, server=server, certificate=certificate, token=token)

    async def stop(self) -> None:
        """End the watches, then the connections, then the store; within two seconds."""
        self._ending = True
        if self._elections is not None and self._electing is not None:
            self._elections.close()
            await self._electing
            self._elections = self._electing = None
        if self._hub is not None:
            self._hub.close()
            self._hub = None
        if self._server is not None and self.serving is not None:
            self._server.should_exit = True
            self._server.look_now()
            await self.serving
            self._server = self.serving = None
        await self._close()

    async def _close(self) -> None:
        if self._namespaces is not None:
            await self._namespaces.close()
            self._namespaces = None
        if self._expiry is not None:
            await self._expiry.close()
            self._expiry = None
        if self._store is not None:
            await self._store.close()
            self._store = None
        if self._tokens is not None:
            self._tokens.close()
            self._tokens = None
        self._lock.release()


def _publish(hub: Hub, elections: ElectionController, events: list[Event]) -> None:
    hub.publish(events)
    elections.notice(events)
