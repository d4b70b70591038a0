"""What a list or a watch can tell, as values: what the cluster's client says to the tracker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from leases.domain.lease import Lease, ObjectName


class Applied(msgspec.Struct, frozen=True, gc=False):
    """ADDED or MODIFIED: the Lease as it is now. Only who keeps no state can tell the two apart.

    `fingerprint` is one number for all renewals that change nothing else, or 0: see
    leases.wire.renewal_fingerprints.
    """

    lease: Lease
    fingerprint: int = 0

    @property
    def resource_version(self) -> str:
        return self.lease.resource_version


class Renewed(msgspec.Struct, frozen=True, gc=False):
    """MODIFIED, where all but version and renewTime is as in an Applied of the same `fingerprint`.

    `line` is what was not decoded.
    """

    fingerprint: int
    version: int
    renew_time: datetime
    line: bytes

    @property
    def resource_version(self) -> str:
        return str(self.version)


class Deleted(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="DELETED"):
    """DELETED: the Lease as it was last; its resourceVersion is that of the deletion."""

    lease: Lease = msgspec.field(name="object")

    @property
    def resource_version(self) -> str:
        return self.lease.resource_version


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """The watch has reached this resourceVersion; nothing else happened."""

    resource_version: str
    initial_events_end: bool = False


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """A Lease that a watch or a list told, of which only this can be read.

    `key` is None where not even its name can, `resource_version` empty where that cannot.
    """

    key: ObjectName | None
    reason: str  # a sentence without anything of the content
    uid: str = ""
    resource_version: str = ""


class ListPage(msgspec.Struct, frozen=True, gc=False):
    """One page of a list of which more is to come; Listed brings the last."""

    leases: tuple[Lease, ...]
    resource_version: str
    remaining: int | None = None  # how many Leases are still to come, where the server tells
    age: float = 0.0  # of the first page, seconds since it came: what was before it is told first
    unreadable: tuple[Unreadable, ...] = ()


class Listed(msgspec.Struct, frozen=True, gc=False):
    """A list is complete: what is neither in this last page nor in those before does not exist."""

    leases: tuple[Lease, ...]
    resource_version: str
    reason: str = "start"  # why we listed: start, gone, restored
    age: float = 0.0  # as in ListPage, if it is the only page
    unreadable: tuple[Unreadable, ...] = ()


class Replayed(msgspec.Struct, frozen=True, gc=False):
    """An event from before the list, told again after a restart; not seen when it happened."""

    event: Applied | Deleted | Unreadable


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """What one reading of the watch brought, in its order."""

    events: Sequence[WatchEvent]


class Connected(msgspec.Struct, frozen=True):
    """The watch is open and answered.

    `unprocessed_seconds` returns how long, at most, received data has waited to become an event.
    """

    unprocessed_seconds: Callable[[], float] = float


class Disconnected(msgspec.Struct, frozen=True, gc=False):
    """The watch broke or could not be opened; `refused` when the cluster said 401 or 403."""

    detail: str
    refused: bool = False


WatchEvent = Applied | Renewed | Deleted | Bookmark | Unreadable
ReflectorEvent = WatchEvent | Arrived | ListPage | Listed | Replayed | Connected | Disconnected
