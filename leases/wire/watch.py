"""Bodies of lists and lines of watches -> values.

Source: k8s.io/apimachinery/pkg/watch (event types), pkg/apis/meta/v1 ListMeta, and
"Efficient detection of changes" in Kubernetes' API concepts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from leases.domain.lease import Lease, ObjectMeta
from leases.wire.events import Applied, Bookmark, Deleted, Unreadable
from leases.wire.status import Status, Unreachable, error_of
from leases.wire.unreadable import cut_list, unreadable_event, unreadable_lease

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class ListMeta(msgspec.Struct, frozen=True):
    """metav1.ListMeta; an empty `next_page` says that this page is the last."""

    resource_version: str = msgspec.field(name="resourceVersion", default="")
    next_page: str = msgspec.field(name="continue", default="")
    remaining: int | None = msgspec.field(name="remainingItemCount", default=None)


class LeasePage(msgspec.Struct, frozen=True):
    """One page of a LeaseList."""

    metadata: ListMeta
    items: tuple[Lease, ...] | None = None
    unreadable: tuple[Unreadable, ...] = ()  # not of the wire: items that are no Leases

    @property
    def leases(self) -> tuple[Lease, ...]:
        return self.items or ()


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


_Event = _Modified | _Added | Deleted | _Bookmark | _Error
# One typed decode per event: the decoder skips managedFields and makes no dict.
_decode_event: Callable[[bytes], _Event] = msgspec.json.Decoder(_Event).decode
_decode_page = msgspec.json.Decoder(LeasePage).decode
_decode_lease = msgspec.json.Decoder(Lease).decode
_T = TypeVar("_T")
_FAILURES = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_event(line: bytes) -> Applied | Deleted | Bookmark | Unreadable:
    """What one line of a watch says.

    Raises the error an ERROR event stands for (Gone for 410), Unreachable for garbage.
    """
    try:
        event = _decode_event(line)
    except _FAILURES as error:
        try:
            event = _read(line, _decode_event, _Event)
        except Unreachable:
            found = unreadable_event(line, error)
            if found is None:
                raise
            return found
    if isinstance(event, _Modified | _Added):
        return Applied(event.object)
    if isinstance(event, Deleted):
        return event
    if isinstance(event, _Bookmark):
        metadata = event.object.metadata
        ends = (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"
        return Bookmark(metadata.resource_version, ends)
    raise error_of(event.object)


def read_page(body: bytes) -> LeasePage:
    """One page of a list. Raises Unreachable for bytes that are none."""
    try:
        return _read(body, _decode_page, LeasePage)
    except Unreachable:
        with suppress(*_FAILURES):
            found = _read_items(body)
            if found is not None:
                return found
        raise


def _read_items(body: bytes) -> LeasePage | None:
    """A page of which some items cannot be read: all others, and the names of those."""
    cut = cut_list(body)
    if cut is None:
        return None
    page = _decode_page(cut[0])
    leases: list[Lease] = []
    unreadable: list[Unreadable] = []
    for item in cut[1]:
        try:
            leases.append(_read(item, _decode_lease, Lease))
        except Unreachable as error:
            unreadable.append(unreadable_lease(item, error.__cause__ or error))
    if not leases and not any(one.key for one in unreadable):
        return None  # a list of something else
    return LeasePage(page.metadata, tuple(leases), tuple(unreadable))


def read_lease(body: bytes) -> Lease:
    """One Lease. Raises Unreachable for bytes that are none."""
    return _read(body, _decode_lease, Lease)


def _read(body: bytes, decode: Callable[[bytes], _T], shape: Any) -> _T:
    try:
        return decode(body)
    except _FAILURES as error:
        # One Lease with a time beyond datetime's years must not hide all others.
        with suppress(*_FAILURES):
            loose = msgspec.json.decode(body)
            _drop_unreadable_times(loose)
            readable: _T = msgspec.convert(loose, shape)
            return readable
        seen = body[:80].decode("utf-8", "replace")
        sentence = f"The cluster sent something that is no Lease API answer: {seen!r} ({error})."
        raise Unreachable(Status(message=sentence)) from error


def _drop_unreadable_times(document: Any) -> None:
    """The API keeps the years 0 and 10000, which Python has not: such a time counts as unset."""
    for spec in _specs(document):
        for name in ("acquireTime", "renewTime"):
            try:
                msgspec.convert(spec.get(name), datetime | None)
            except msgspec.ValidationError:
                spec[name] = None


def _specs(document: Any) -> list[dict[str, Any]]:
    """The specs in a Lease, in an event that holds one, or in a list."""
    if not isinstance(document, dict):
        return []
    items = document.get("items")
    places = [document, document.get("object"), *(items if isinstance(items, list) else ())]
    specs = [place.get("spec") for place in places if isinstance(place, dict)]
    return [spec for spec in specs if isinstance(spec, dict)]
