"""What a list or a watch can tell, as values: what the cluster's client says to the tracker."""

from __future__ import annotations

import msgspec

from leases.domain.lease import Lease


class Applied(msgspec.Struct, frozen=True, gc=False):
    """ADDED or MODIFIED: the Lease as it is now. Only who keeps no state can tell the two apart."""

    lease: Lease


class Deleted(msgspec.Struct, frozen=True, gc=False):
    """DELETED: the Lease as it was last; its resourceVersion is that of the deletion."""

    lease: Lease


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """The watch has reached this resourceVersion; nothing else happened."""

    resource_version: str
    initial_events_end: bool = False


class Listed(msgspec.Struct, frozen=True, gc=False):
    """A complete list: what is not in it does not exist."""

    leases: tuple[Lease, ...]
    resource_version: str
    reason: str = "start"  # why we listed: start, gone, restored


class Replayed(msgspec.Struct, frozen=True, gc=False):
    """An event from before the list, told again after a restart; not seen when it happened."""

    event: Applied | Deleted


class Connected(msgspec.Struct, frozen=True, gc=False):
    """The watch is open and answered."""


class Disconnected(msgspec.Struct, frozen=True, gc=False):
    """The watch broke or could not be opened; `refused` when the cluster said 401 or 403."""

    detail: str
    refused: bool = False


WatchEvent = Applied | Deleted | Bookmark
ReflectorEvent = WatchEvent | Listed | Replayed | Connected | Disconnected
