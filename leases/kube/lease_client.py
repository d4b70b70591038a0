"""The verbs of the Lease API, one method each; what we may do, and LeaseCandidates.

Alpha in v1alpha2, beta in v1beta1, both off by default (feature gate CoordinatedLeaderElection).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Container, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from leases.domain.election import Candidate
from leases.domain.lease import Lease, ObjectName
from leases.kube.http_session import JSON, MAX_BODY, Query, Session, Timeouts, advise
from leases.kube.open_watch import OpenWatch, read_lines, turn
from leases.wire import watch_decoding
from leases.wire.json_decoding import Undecodable, decoder, read_document
from leases.wire.status import ApiError, Forbidden, Invalid, NotFound, Status, Unreachable


def delete_options(*, dry_run: bool, preconditions: dict[str, str]) -> dict[str, Any]:
    """Return complete metav1.DeleteOptions: with a body, the API server ignores the query."""
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if dry_run:
        options["dryRun"] = ["All"]
    if preconditions:
        options["preconditions"] = preconditions
    return options


API = "/apis/coordination.k8s.io/v1"
MERGE_PATCH = "application/merge-patch+json"
PAGE = 500  # resourceVersion=0 would ignore the limit and return one huge body
FIELD_MANAGER = "leaseboard"  # of our writes, in metadata.managedFields
AT_ONCE = 40  # Leases of a page that are yielded at a time
READ_ONLY = "Leaseboard only reads this cluster (LEASEBOARD_READ_ONLY). Nothing was sent."

T = TypeVar("T")
Texts = list[str]  # inside the class, `list` is a method


class ServerVersion(msgspec.Struct, frozen=True, rename="camel"):
    """What `/version` answers; nearly every cluster tells it everybody."""

    git_version: str


class ReadOnly(Forbidden):
    """Leaseboard is set to write nothing to this cluster; no request was sent."""


class LeaseClient:
    """Reads and writes one cluster's Leases. A late answer raises Unreachable."""

    def __init__(self, session: Session, *, as_user: str = "") -> None:
        self._session = session
        self._as_user = as_user
        self.read_only = False  # True: every write raises ReadOnly, dry runs too
        self._watched: OpenWatch | None = None

    def acting_as(self, user: str) -> LeaseClient:
        """Return a client of the same cluster whose writes the cluster takes for this user's."""
        client = LeaseClient(self._session, as_user=user)
        client.read_only = self.read_only
        return client

    def unprocessed_seconds(self) -> float:
        """Return how many seconds received data of the newest watch may have waited."""
        return 0.0 if self._watched is None else self._watched.unprocessed_seconds()

    def silent_seconds(self) -> float:
        """Return for how many seconds the newest watch has not shown that the cluster is alive."""
        return 0.0 if self._watched is None else self._watched.silent_seconds()

    def look(self) -> None:
        """Ask a silent cluster now whether it is alive."""
        if self._watched is not None:
            self._watched.look()

    @property
    def host(self) -> str:
        """The base URL of the cluster's API."""
        return self._session.host

    @property
    def limits(self) -> Timeouts:
        return self._session.limits

    def advise(self, error: ApiError) -> str:
        """Say what to do about an error of this client, in one or two sentences."""
        return advise(self.host, error)

    async def list(
        self, *, limit: int = PAGE
    ) -> AsyncGenerator[watch_decoding.ListPage | watch_decoding.Listed, None]:
        """Yield every Lease, a few at a time, as of the first page.

        The next page is requested while this one is processed. Raises Gone if the continue token
        expires. Close it (contextlib.aclosing) when done.
        """
        page = await self._page(limit, "", within=self.limits.page)
        while token := page.metadata.next_page:
            coming = asyncio.create_task(self._page(limit, token, within=self.limits.page))
            try:
                for part in _parts(page):
                    yield part
                page = await coming
            finally:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
        meta = page.metadata
        yield watch_decoding.Listed(page.leases, meta.resource_version, unreadable=page.unreadable)

    @contextlib.asynccontextmanager
    async def watch(
        self, since: str, *, timeout_seconds: int, known: Container[int] = ()
    ) -> AsyncIterator[AsyncIterator[Sequence[watch_decoding.WatchEvent]]]:
        """Yield the events of each read of a watch; see `open_watch`.

        It may be open beside another one, which is the newest again afterwards.
        """
        before = self._watched
        try:
            async with (
                self.open_watch(since, timeout_seconds=timeout_seconds, known=known) as watch,
                contextlib.aclosing(watch.readings()) as readings,
            ):
                yield readings
        finally:
            self._watched = before or self._watched

    @contextlib.asynccontextmanager
    async def open_watch(
        self,
        since: str,
        *,
        timeout_seconds: int,
        known: Container[int] = (),
        idle: Callable[[], bool] = bool,
    ) -> AsyncIterator[OpenWatch]:
        """Open a watch for events after `since`; entered once the server has answered.

        The server ends it after `timeout_seconds`. Gone means: list again. A renewal with a
        fingerprint in `known` arrives as Renewed. `idle`: whether no Lease can expire now.
        """
        query = (
            ("resourceVersion", since),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(timeout_seconds)),
        )
        async with self._session.watch(f"{API}/leases", query=query) as body:
            watch = self._watched = OpenWatch(
                body,
                session=self._session,
                since=since,
                lasts=timeout_seconds,
                newest=self.newest_version,
                known=known,
                idle=idle,
                alive=None if self._watched is None else self._watched.alive_at,
            )
            yield watch

    async def newest_version(self) -> str:
        """Return the cluster's current resourceVersion: the cheapest health check."""
        page = await self._page(1, "", within=self.limits.probe)
        return page.metadata.resource_version

    async def server_version(self) -> str:
        """Return the version of the API server, such as v1.34.1."""
        found = await self.read(
            "/version", ServerVersion, "version", query=(), within=self.limits.probe
        )
        return found.git_version

    async def get(self, key: ObjectName) -> Lease:
        return watch_decoding.read_lease(await self._session.fetch("GET", _path(key)))

    async def read(
        self,
        path: str,
        shape: type[T],
        what: str,
        *,
        query: Query,
        within: float,
        accept: str = JSON,
        max_bytes: int = MAX_BODY,
    ) -> T:
        """Return the answer to any other GET as `shape`, which `what` names in an error."""
        body = await self._session.fetch(
            "GET", path, query=query, within=within, accept=accept, max_bytes=max_bytes
        )
        try:
            answer: T = decoder(shape)(body)
        except Undecodable as error:
            sentence = f"The cluster sent something that is no {what} ({error})."
            raise Unreachable(sentence) from error
        return answer

    async def watch_lines(
        self, path: str, *, query: Query, lasts: float
    ) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a watch of other objects until the server ends it. Raises ApiError."""
        async with self._session.watch(path, query=query) as body:
            limit = lasts + self.limits.slack
            async with contextlib.aclosing(read_lines(body, host=self.host, lasts=limit)) as lines:
                async for line in lines:
                    yield line

    async def configure_again(self) -> None:
        """Read the cluster's address and our credentials again. Open watches end."""
        await self._session.configure_again()

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Any = None,
        within: float | None = None,
        received: dict[str, str] | None = None,
    ) -> bytes:
        """Send any other request that writes nothing; put the answer's headers into `received`."""
        return await self._session.fetch(
            method, path, query=query, body=body, within=within, as_user=self._as_user,
            received=received,
        )  # fmt: skip

    async def raw_get(self, key: ObjectName, *, within: float | None = None) -> dict[str, Any]:
        """Return the whole object with all its fields, managedFields included."""
        return _object(await self._session.fetch("GET", _path(key), within=within))

    async def create(self, body: dict[str, Any], *, dry_run: bool = False) -> Lease:
        path = _collection(body.get("metadata", {}).get("namespace", ""))
        return watch_decoding.read_lease(await self._write("POST", path, body, dry_run=dry_run))

    async def raw_create(
        self, body: dict[str, Any], *, dry_run: bool = False, warnings: Texts | None = None
    ) -> dict[str, Any]:
        """Create, and return the whole object. The server's warnings are appended to `warnings`."""
        path = _collection(body.get("metadata", {}).get("namespace", ""))
        answer = await self._write("POST", path, body, dry_run=dry_run, warnings=warnings)
        return _object(answer)

    async def replace(
        self, key: ObjectName, body: dict[str, Any], *, dry_run: bool = False
    ) -> Lease:
        """Replace the whole object. Without a uid this may re-create a deleted Lease."""
        return watch_decoding.read_lease(
            await self._write("PUT", _path(key), body, dry_run=dry_run)
        )

    async def patch(
        self, key: ObjectName, body: Any, content_type: str = MERGE_PATCH, *, dry_run: bool = False
    ) -> Lease:
        """Change some fields. A metadata.resourceVersion is a precondition (Conflict)."""
        path = _path(key)
        return watch_decoding.read_lease(
            await self._write("PATCH", path, body, content_type, dry_run=dry_run)
        )

    async def raw_patch(
        self,
        key: ObjectName,
        body: Any,
        content_type: str = MERGE_PATCH,
        *,
        dry_run: bool = False,
        warnings: Texts | None = None,
    ) -> dict[str, Any]:
        """Patch, and return the whole object. The server's warnings are appended to `warnings`."""
        answer = await self._write(
            "PATCH", _path(key), body, content_type, dry_run=dry_run, warnings=warnings
        )
        return _object(answer)

    async def delete(
        self,
        key: ObjectName,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete a Lease if it still has this uid and resourceVersion (else Conflict)."""
        guards = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {name: value for name, value in guards.items() if value}
        self._check_writable()
        await self._session.fetch(
            "DELETE",
            _path(key),
            body=delete_options(dry_run=dry_run, preconditions=preconditions),
            as_user=self._as_user,
        )

    async def close(self) -> None:
        """Close all connections. Open watches end with Unreachable."""
        await self._session.close()

    async def _page(self, limit: int, token: str, *, within: float) -> watch_decoding.LeaseListPage:
        query = [("limit", str(limit))] + ([("continue", token)] if token else [])
        path = f"{API}/leases"
        body = await self._session.fetch("GET", path, query=query, within=within)
        async with turn():
            return watch_decoding.read_page(body)

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnly(Status(code=403, reason="Forbidden", message=READ_ONLY))

    async def _write(
        self,
        method: str,
        path: str,
        body: Any,
        content_type: str = JSON,
        *,
        dry_run: bool,
        warnings: Texts | None = None,
    ) -> bytes:
        self._check_writable()
        query = [("fieldManager", FIELD_MANAGER)] + ([("dryRun", "All")] if dry_run else [])
        return await self._session.fetch(
            method,
            path,
            query=query,
            body=body,
            content_type=content_type,
            as_user=self._as_user,
            warnings=warnings,
        )


def _parts(page: watch_decoding.LeaseListPage) -> Iterator[watch_decoding.ListPage]:
    """Split a page into pieces that do not block the event loop."""
    leases, meta, unreadable = page.leases, page.metadata, page.unreadable
    for first in range(0, len(leases) or 1, AT_ONCE):
        some = leases[first : first + AT_ONCE]
        left = len(leases) - first - len(some)
        remaining = None if meta.remaining is None else meta.remaining + left
        yield watch_decoding.ListPage(some, meta.resource_version, remaining, unreadable=unreadable)
        unreadable = ()


def _collection(namespace: str) -> str:
    return f"{API}/namespaces/{segment(namespace)}/leases"


def _path(key: ObjectName) -> str:
    return f"{_collection(key.namespace)}/{segment(key.name)}"


def segment(text: str) -> str:
    """Quote one path segment. An empty one or dots would address the whole collection."""
    if text in ("", ".", "..") or "/" in text or "%" in text:
        raise Invalid(Status(code=422, reason="Invalid", message=f"{text!r} is no object's name."))
    return quote(text, safe="")


def _object(body: bytes) -> dict[str, Any]:
    try:
        return read_document(body)
    except Undecodable as error:
        raise Unreachable(f"The cluster sent no object: {error}.") from error


PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
GROUP = "coordination.k8s.io"


class _Status(msgspec.Struct, frozen=True):
    allowed: bool


class _Review(msgspec.Struct, frozen=True):
    status: _Status


_decode: Callable[[bytes], _Review] = decoder(_Review)


async def may(
    client: LeaseClient,
    verb: str,
    namespace: str,
    *,
    within: float,
    resource: str = "leases",
    group: str = GROUP,
) -> bool:
    """Return whether the cluster allows the verb in a namespace; "": in all. Raises ApiError.

    The question is about the user for whom the client acts.
    """
    wanted = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": wanted},
    }
    answer = await client.send("POST", PATH, body=body, within=within)
    try:
        return _decode(answer).status.allowed
    except Undecodable as error:
        raise Unreachable(f"The cluster sent something that is no review ({error}).") from error


COORDINATION = "/apis/coordination.k8s.io"
VERSIONS = ("v1beta1", "v1alpha2")  # the newest first
MAX_CANDIDATES = 500  # per namespace; a Lease has a handful
_QUERY = (("limit", str(MAX_CANDIDATES)),)


class _Candidates(msgspec.Struct, frozen=True):
    items: tuple[Candidate, ...] | None = None


async def candidates_of(client: LeaseClient, lease: ObjectName, *, within: float) -> (
    tuple[Candidate, ...] | None
):  # fmt: skip
    """Return the candidates of a Lease, by name; None if the cluster has no LeaseCandidates.

    `within` is the limit of each request in seconds. Raises ApiError.
    """
    for version in VERSIONS:
        path = f"{COORDINATION}/{version}/namespaces/{segment(lease.namespace)}/leasecandidates"
        try:
            found = await client.read(
                path, _Candidates, "list of LeaseCandidates", query=_QUERY, within=within
            )
        except NotFound:
            continue
        standing = [c for c in found.items or () if c.spec.lease_name == lease.name]
        return tuple(sorted(standing, key=lambda candidate: candidate.name))
    return None
