"""Find the first event of one Lease after a resourceVersion.

A write that requires a resourceVersion succeeds only if it is that event.
"""

from __future__ import annotations

from typing import Any

import msgspec

from leases.domain.lease import ObjectName
from leases.kube.lease_client import API, LeaseClient, segment
from leases.wire.json_decoding import Undecodable, read_document
from leases.wire.status import Status, Unreachable, error_of

SECONDS = 1  # the shortest watch: earlier events come at once
WRITTEN = ("ADDED", "MODIFIED", "DELETED")


class FirstEvent(msgspec.Struct, frozen=True):
    """ADDED, MODIFIED or DELETED, and the whole object with its managedFields."""

    type: str
    document: dict[str, Any]


async def first_event(client: LeaseClient, key: ObjectName, since: str) -> FirstEvent | None:
    """Return the event, or None if there was none. Raises ApiError; Gone: `since` is too old."""
    query = (
        ("watch", "true"),
        ("fieldSelector", f"metadata.name={key.name}"),
        ("resourceVersion", since),
        ("timeoutSeconds", str(SECONDS)),
    )
    path = f"{API}/namespaces/{segment(key.namespace)}/leases"
    for line in (await client.send("GET", path, query=query)).splitlines():
        try:
            event = read_document(line)
            found = event.get("object")
            if event.get("type") == "ERROR":
                raise error_of(msgspec.convert(found, Status))
        except (Undecodable, msgspec.ValidationError) as error:
            raise Unreachable(f"The cluster sent something that is no event: {error}.") from error
        if event.get("type") in WRITTEN and isinstance(found, dict):
            return FirstEvent(event["type"], found)
    return None
