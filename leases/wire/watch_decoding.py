"""Decode list bodies and watch lines into the events that the tracker follows.

Source: k8s.io/apimachinery/pkg/apis/meta/v1 ManagedFieldsEntry; FieldsV1 prefixes a field's name
with `f:`.

Only broken or foreign API servers send such bytes. All of this runs after a decoder failed.

Source: k8s.io/apimachinery/pkg/watch (event types), pkg/apis/meta/v1 ListMeta, and "Efficient
detection of changes" in Kubernetes' API concepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from leases.domain.change import FieldManager, Managers
from leases.domain.lease import (
    MAX_NAME,
    MAX_NAMESPACE,
    MAX_UID,
    Lease,
    ObjectMeta,
    ObjectName,
    ResourceVersion,
    is_number,
)
from leases.domain.steady_clock import in_utc
from leases.wire.json_decoding import FAILURES, Undecodable, decoder
from leases.wire.status import Status, Unreachable, error_of


class Applied(msgspec.Struct, frozen=True, gc=False):
    """ADDED or MODIFIED: the Lease as it is now.

    `fingerprint` is one number for all renewals that change nothing else, or 0: see
    leases.wire.renewal_lines. `line` is the undecoded event, for its managedFields.
    """

    lease: Lease
    fingerprint: int = 0
    line: bytes = b""

    @property
    def resource_version(self) -> str:
        return self.lease.resource_version


class Renewed(msgspec.Struct, frozen=True, gc=False):
    """MODIFIED: a renewal of the Lease that came as Applied with the same `fingerprint`.

    `line` is the undecoded event.
    """

    fingerprint: int
    version: int
    renew_time: datetime
    line: bytes

    @property
    def resource_version(self) -> str:
        return str(self.version)


class Deleted(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="DELETED"):
    """DELETED: the last state of the Lease, with the resourceVersion of the deletion."""

    lease: Lease = msgspec.field(name="object")

    @property
    def resource_version(self) -> str:
        return self.lease.resource_version


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """The watch has reached this resourceVersion."""

    resource_version: str


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """A Lease of which only this can be read.

    `key` is None if even its name is unreadable; `resource_version` may be empty.
    """

    key: ObjectName | None
    reason: str  # a sentence that quotes no content
    uid: str = ""
    resource_version: str = ""

    def bare_lease(self) -> Lease:
        key = self.key or ObjectName("", "")
        meta = ObjectMeta(key.name, key.namespace, self.uid, self.resource_version)
        return Lease(meta)


class ListPage(msgspec.Struct, frozen=True, gc=False):
    """One page of a list; Listed is the last page."""

    leases: tuple[Lease, ...]
    resource_version: str
    remaining: int | None = None  # Leases still to come, if the server says so
    age: float = 0.0  # seconds since the first page: earlier events are replayed first
    unreadable: tuple[Unreadable, ...] = ()


class Listed(msgspec.Struct, frozen=True, gc=False):
    """The last page of a list. A Lease that is in none of its pages does not exist."""

    leases: tuple[Lease, ...]
    resource_version: str
    reason: str = "start"  # why we listed: start, gone, restored
    age: float = 0.0  # as in ListPage, if this is the only page
    unreadable: tuple[Unreadable, ...] = ()


class Replayed(msgspec.Struct, frozen=True, gc=False):
    """Events from before the list, read again after a restart, in order; not observed live."""

    events: Sequence[WatchEvent]


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """The events of one read of the watch, in order."""

    events: Sequence[WatchEvent]


class Connected(msgspec.Struct, frozen=True):
    """The watch is open and answered.

    `unprocessed_seconds` returns how long, at most, received data has waited to become an event;
    `silent_seconds` how long nothing has shown that the cluster is alive, which `look` asks it now.
    `listed_seconds` ago the list was asked for that it follows, if any: a busy process reads the
    first events late.
    """

    unprocessed_seconds: Callable[[], float] = float
    silent_seconds: Callable[[], float] = float
    look: Callable[[], object] = bool
    listed_seconds: float = 0.0


class Disconnected(msgspec.Struct, frozen=True, gc=False):
    """The watch broke or could not be opened; `refused`: the answer was 401 or 403.

    `paused_at`: it did not break, but somebody paused it then.
    """

    detail: str
    refused: bool = False
    paused_at: datetime | None = None


WatchEvent = Applied | Renewed | Deleted | Bookmark | Unreadable
ReflectorEvent = WatchEvent | Arrived | ListPage | Listed | Replayed | Connected | Disconnected


MAX_ENTRIES = 50  # of one Lease that are read; each writer has one


class _Entry(msgspec.Struct, frozen=True, rename="camel"):
    manager: str = ""
    operation: str = ""
    time: datetime | None = None
    fields: dict[str, Any] | None = msgspec.field(name="fieldsV1", default=None)


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    managed_fields: tuple[_Entry, ...] | None = None


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


class _Event(msgspec.Struct, frozen=True):
    object: _Object = _Object()


_decode_event = decoder(_Event)


def managers_of_event(line: bytes) -> Managers:
    """Return the field managers of the Lease in a watch line; none if they are unreadable."""
    try:
        event: _Event = _decode_event(line)
    except Undecodable:
        return ()
    return _managers(event.object)


def _managers(one: _Object) -> Managers:
    entries = (one.metadata.managed_fields or ())[:MAX_ENTRIES]
    return tuple(
        FieldManager(entry.manager, entry.operation, entry.time, frozenset(_names(entry.fields)))
        for entry in entries
    )


def _names(fields: dict[str, Any] | None) -> Iterator[str]:
    fields = fields or {}
    metadata = _inner(fields, "metadata")
    for name, part in (
        ("spec", _inner(fields, "spec")),
        ("labels", _inner(metadata, "labels")),
        ("annotations", _inner(metadata, "annotations")),
    ):
        yield from (f"{name}.{key[2:]}" for key in part if key.startswith("f:"))


def _inner(fields: dict[str, Any], name: str) -> dict[str, Any]:
    inner = fields.get(f"f:{name}")
    return inner if isinstance(inner, dict) else {}


_EVENT = re.compile(rb'\s*\{\s*"type"\s*:\s*"(ADDED|MODIFIED|DELETED|BOOKMARK)"\s*,\s*"object"')
# kube-apiserver's order of fields; names contain no character that JSON escapes.
_METADATA = re.compile(
    rb'"metadata"\s*:\s*\{\s*"name"\s*:\s*"(?P<name>[^"\\]+)"'
    rb'[^{}\[\]]*?"namespace"\s*:\s*"(?P<namespace>[^"\\]+)"'
    rb'(?:[^{}\[\]]*?"uid"\s*:\s*"(?P<uid>[^"\\]*)")?'
    rb'(?:[^{}\[\]]*?"resourceVersion"\s*:\s*"(?P<version>[0-9]*)")?'
)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def unreadable_event(line: bytes, error: BaseException) -> Unreadable | Deleted | None:
    """Return what is readable of a watch line; None: the line is no event and the stream is broken.

    Of a deletion only the name is needed.
    """
    begins = _EVENT.match(line)
    if begins is None:
        return None
    found = unreadable_lease(line, error)
    if found.key is None and not _is_json(line):
        return None
    if begins[1] == b"DELETED" and found.key is not None and found.resource_version:
        return Deleted(found.bare_lease())
    return found


def unreadable_lease(text: bytes, error: BaseException) -> Unreadable:
    """Return what is readable of one Lease, or of an event with one."""
    reason = f"It cannot be read: {error}."
    found = _METADATA.search(text)
    parts = {} if found is None else {k: v or b"" for k, v in found.groupdict().items()}
    meta = {name: part.decode("utf-8", "replace") for name, part in parts.items()}
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        meta = _metadata_in(msgspec.json.decode(text)) or meta
    name, namespace, uid, version = (
        meta.get(part, "") for part in ("name", "namespace", "uid", "version")
    )
    fits = len(namespace) <= MAX_NAMESPACE and len(name) <= MAX_NAME
    if not (fits and is_plain(namespace, name, "")):
        return Unreadable(None, reason, resource_version=version if is_number(version) else "")
    return Unreadable(
        key=ObjectName(namespace, name),
        reason=reason,
        uid=uid if is_plain(namespace, name, uid) and len(uid) <= MAX_UID else "",
        resource_version=version if is_number(version) else "",
    )


def is_plain(namespace: str, name: str, others: str) -> bool:
    """Whether this name can be used in a URL, in the log and in the database."""
    text = namespace + name + others
    return bool(namespace and name and text.isascii() and text.isprintable() and "/" not in text)


def _is_json(text: bytes) -> bool:
    """Whether the text is JSON, as far as a decoder can tell."""
    try:
        msgspec.json.decode(text)
    except RecursionError:
        return True
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _metadata_in(document: object) -> dict[str, str]:
    """Return the texts that identify the object; empty if there are none."""
    if isinstance(document, dict) and isinstance(document.get("object"), dict):
        document = document["object"]
    found = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(found, dict):
        return {}
    fields = {"name": "name", "namespace": "namespace", "uid": "uid", "version": "resourceVersion"}
    return {
        name: value for name, field in fields.items() if isinstance(value := found.get(field), str)
    }


def cut_list(body: bytes) -> tuple[bytes, list[bytes]] | None:
    """Split a list into its head and its items; None if it has no items.

    It counts brackets, because an item may be nested too deep for any decoder.
    """
    tokens = _tokens(body)
    depth, before = 0, b""
    for token, start in tokens:
        if token == b"[" and depth == 1 and before == b'"items"':
            items = list(_items(tokens))
            end = items[-1][1] if items else start + 1
            rest = body[: start + 1] + body[end:]
            return rest, [body[first:last] for first, last in items]
        depth += (token in b"[{") - (token in b"]}")
        before = token
    return None


def _items(tokens: Iterator[tuple[bytes, int]]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each object in the array whose bracket was the last token."""
    depth = first = 0
    for token, start in tokens:
        if token in b"[{":
            if depth == 0:
                first = start
            depth += 1
        elif token in b"]}":
            depth -= 1
            if depth < 0:
                return
            if depth == 0:
                yield first, start + 1


def _tokens(body: bytes) -> Iterator[tuple[bytes, int]]:
    for match in _TOKEN.finditer(body):
        yield match[0], match.start()


_replace = msgspec.structs.replace


class ListMeta(msgspec.Struct, frozen=True):
    """metav1.ListMeta; `next_page` is empty on the last page."""

    resource_version: ResourceVersion = msgspec.field(name="resourceVersion", default="")
    next_page: str = msgspec.field(name="continue", default="")
    remaining: int | None = msgspec.field(name="remainingItemCount", default=None)


class LeaseListPage(msgspec.Struct, frozen=True):
    """One page of a LeaseList; `unreadable` are its items that are invalid."""

    metadata: ListMeta
    leases: tuple[Lease, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()


class _List(msgspec.Struct, frozen=True):
    metadata: ListMeta
    items: tuple[Lease, ...] | None = None


class _Progress(msgspec.Struct, frozen=True, gc=False):
    metadata: ObjectMeta


class _Added(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="ADDED"):
    object: Lease


class _Modified(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="MODIFIED"):
    object: Lease


class _Bookmark(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="BOOKMARK"):
    object: _Progress


class _Error(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="ERROR"):
    object: Status


_WRITTEN = (_Modified, _Added)
_WireEvent = _Modified | _Added | Deleted | _Bookmark | _Error
# One typed decode per event: it skips managedFields and makes no dict.
_decode_wire_event: Callable[[bytes], _WireEvent] = msgspec.json.Decoder(_WireEvent).decode
_decode_event_slowly: Callable[[bytes], _WireEvent] = decoder(_WireEvent)
_decode_list: Callable[[bytes], _List] = decoder(_List)
_decode_lease: Callable[[bytes], Lease] = decoder(Lease)


def read_event(line: bytes) -> Applied | Deleted | Bookmark | Unreadable:
    """Decode one line of a watch.

    Raises the error of an ERROR event (Gone for 410), and Unreachable for invalid bytes.
    """
    try:
        event = _decode_wire_event(line)
    except FAILURES:
        try:
            event = _decode_event_slowly(line)
        except Undecodable as error:
            found = unreadable_event(line, error)
            if found is None:
                raise _garbage(line, error) from error
            return found
    if isinstance(event, _WRITTEN):
        lease = _checked(event.object)
        return lease if isinstance(lease, Unreadable) else Applied(lease, line=line)
    if isinstance(event, Deleted):
        lease = _checked(event.lease)
        return lease if isinstance(lease, Unreadable) else Deleted(lease)
    if isinstance(event, _Bookmark):
        return Bookmark(event.object.metadata.resource_version)
    raise error_of(event.object)


def read_page(body: bytes) -> LeaseListPage:
    """Decode one page of a list. Raises Unreachable for invalid bytes."""
    try:
        page = _decode_list(body)
        return _page(page.metadata, map(_checked, page.items or ()))
    except Undecodable as error:
        found = _read_items(body)
        if found is None:
            raise _garbage(body, error) from error
        return found


def _read_items(body: bytes) -> LeaseListPage | None:
    """Decode a page with unreadable items: all others, and the names of those."""
    cut = cut_list(body)
    if cut is None:
        return None
    try:
        metadata = _decode_list(cut[0]).metadata
    except Undecodable:
        return None
    page = _page(metadata, map(_read_item, cut[1]))
    if not page.leases and not any(one.key for one in page.unreadable):
        return None  # a list of other objects
    return page


def _read_item(body: bytes) -> Lease | Unreadable:
    try:
        return _checked(_decode_lease(body))
    except Undecodable as error:
        return unreadable_lease(body, error)


def _page(metadata: ListMeta, items: Iterable[Lease | Unreadable]) -> LeaseListPage:
    found = list(items)
    return LeaseListPage(
        metadata,
        tuple([item for item in found if isinstance(item, Lease)]),
        tuple([item for item in found if isinstance(item, Unreadable)]),
    )


def read_lease(body: bytes) -> Lease:
    """Decode one Lease. Raises Unreachable for invalid bytes."""
    try:
        lease = _checked(_decode_lease(body))
    except Undecodable as error:
        raise _garbage(body, error) from error
    if isinstance(lease, Unreadable):
        raise Unreachable(lease.reason)
    return lease


def lease_of(document: dict[str, Any]) -> Lease:
    """Convert a decoded object to a Lease. Raises Unreachable if it is none."""
    return read_lease(msgspec.json.encode(document))


def _checked(lease: Lease) -> Lease | Unreadable:
    """Check that a Lease has a usable name, and convert its times to UTC."""
    meta, spec = lease.metadata, lease.spec
    name, namespace = meta.name, meta.namespace
    text = namespace + name + meta.uid + meta.resource_version
    # The same check as is_plain, inlined because it runs for every write.
    if not (name and namespace and text.isascii() and text.isprintable() and "/" not in text):
        return Unreadable(None, "Its name, uid or resourceVersion cannot be one.")
    acquired, renewed, created = spec.acquire_time, spec.renew_time, meta.creation_timestamp
    if (
        (renewed is None or renewed.tzinfo is UTC)
        and (acquired is None or acquired.tzinfo is UTC)
        and (created is None or created.tzinfo is UTC)
    ):
        return lease
    return Lease(
        _replace(meta, creation_timestamp=created and in_utc(created)),
        _replace(
            spec,
            acquire_time=acquired and in_utc(acquired),
            renew_time=renewed and in_utc(renewed),
        ),
    )


def _garbage(body: bytes, error: Undecodable) -> Unreachable:
    seen = body[:80].decode("utf-8", "replace")
    return Unreachable(
        f"The cluster sent something that is no Lease API answer: {seen!r} ({error})."
    )
