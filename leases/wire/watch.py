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
from leases.wire.events import Applied, Bookmark, Deleted
from leases.wire.status import Status, Unreachable, error_of

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


def read_event(line: bytes) -> Applied | Deleted | Bookmark:
    """What one line of a watch says.

    Raises the error an ERROR event stands for (Gone for 410), Unreachable for garbage.
    """
    try:
        event = _decode_event(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        event = _read(line, _decode_event, _Event)
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
    return _read(body, _decode_page, LeasePage)


def read_lease(body: bytes) -> Lease:
    """One Lease. Raises Unreachable for bytes that are none."""
    return _read(body, _decode_lease, Lease)


def _read(body: bytes, decode: Callable[[bytes], _T], shape: Any) -> _T:
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # One Lease with a time beyond datetime's years must not hide all others.
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
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
