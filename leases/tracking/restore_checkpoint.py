"""Read the checkpoint that an earlier run wrote."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from sys import intern

import msgspec

from leases.tracking.compact_lease import compact
from leases.tracking.tracked_lease import Tracked

logger = logging.getLogger(__name__)

_replace = msgspec.structs.replace
_decode = msgspec.json.Decoder(Tracked).decode


def read_remembered(records: Iterable[bytes]) -> list[Tracked]:
    """Return the states that can be read. Any other Lease counts as new."""
    states, unreadable = [], 0
    for record in records:
        try:
            states.append(_shared(_decode(record)))
        except msgspec.DecodeError:
            unreadable += 1
    if unreadable:
        logger.warning("%d stored Leases cannot be read and count as new", unreadable)
    return states


def _shared(known: Tracked) -> Tracked:
    """Share texts, as for a Lease from the wire."""
    lasting = known.lasting
    lease = compact(lasting.lease)
    reason = intern(lasting.kind_reason)
    lasting = _replace(lasting, key=lease.key, lease=lease, kind_reason=reason)
    return _replace(known, lasting=lasting)
