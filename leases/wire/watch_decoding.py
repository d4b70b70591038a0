"""Decode list bodies and watch lines.

Source: k8s.io/apimachinery/pkg/watch (event types), pkg/apis/meta/v1 ListMeta, and "Efficient
detection of changes" in Kubernetes' API concepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC
from typing import Any

import msgspec

from leases.domain.bounded_time import in_utc
from leases.domain.lease import Lease, ObjectMeta, ResourceVersion
from leases.wire.json_decoding import FAILURES, Undecodable, decoder
from leases.wire.status import Status, Unreachable, error_of
from leases.wire.unreadable_leases import cut_list, unreadable_event, unreadable_lease
from leases.wire.watch_events import Applied, Bookmark, Deleted, Unreadable

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
_Event = _Modified | _Added | Deleted | _Bookmark | _Error
# One typed decode per event: it skips managedFields and makes no dict.
_decode_event: Callable[[bytes], _Event] = msgspec.json.Decoder(_Event).decode
_decode_event_slowly: Callable[[bytes], _Event] = decoder(_Event)
_decode_list: Callable[[bytes], _List] = decoder(_List)
_decode_lease: Callable[[bytes], Lease] = decoder(Lease)


def read_event(line: bytes) -> Applied | Deleted | Bookmark | Unreadable:
    """Decode one line of a watch.

    Raises the error of an ERROR event (Gone for 410), and Unreachable for invalid bytes.
    """
    try:
        event = _decode_event(line)
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
