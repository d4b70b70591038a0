"""Give the changes that pages show the cause that became known after they were sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from leases.domain.cause.incident import Cause, Incident
from leases.domain.changes.change import Change
from leases.domain.changes.change_identity import identity
from leases.domain.lease import ObjectName

Recent = deque[tuple[int, Change]]  # changes with their number in the feed, oldest first


def explain(recent: Recent, incidents: Iterable[Incident]) -> list[Change]:
    """Write cause and incident into the recent changes, and return those that they differ for."""
    causes = {
        (member.lease, member.identity): incident
        for incident in incidents
        for member in incident.members
    }
    found = []
    for place, (seq, change) in enumerate(recent if causes else ()):
        key = ObjectName(change.namespace, change.name)
        incident = causes.get((key, identity(change)))
        if incident is None:
            continue
        known = msgspec.structs.replace(change, cause=incident.cause, incident=incident.id)
        given_up = incident.settled and incident.cause is Cause.UNKNOWN
        if known != change or given_up:  # then nobody looks for the cause any more
            recent[place] = (seq, known)
            found.append(known)
    return found
