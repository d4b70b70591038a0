"""The events that a cluster's client sends to the tracker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from leases.domain.lease import Lease, ObjectMeta, ObjectName


class Applied(msgspec.Struct, frozen=True, gc=False):
    """ADDED or MODIFIED: the Lease as it is now.

    `fingerprint` is one number for all renewals that change nothing else, or 0: see
    leases.wire.renewal_fingerprints. `line` is the undecoded event, for its managedFields.
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
    """An event from before the list, read again after a restart; not observed live."""

    event: Applied | Deleted | Unreadable


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """The events of one read of the watch, in order."""

    events: Sequence[WatchEvent]


class Connected(msgspec.Struct, frozen=True):
    """The watch is open and answered.

    `unprocessed_seconds` returns how long, at most, received data has waited to become an event.
    """

    unprocessed_seconds: Callable[[], float] = float


class Disconnected(msgspec.Struct, frozen=True, gc=False):
    """The watch broke or could not be opened; `refused`: the answer was 401 or 403."""

    detail: str
    refused: bool = False


WatchEvent = Applied | Renewed | Deleted | Bookmark | Unreadable
ReflectorEvent = WatchEvent | Arrived | ListPage | Listed | Replayed | Connected | Disconnected
