"""What an earlier run wrote down of each Lease, read again."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import msgspec

from leases.tracking.tracked import Tracked

logger = logging.getLogger(__name__)

_decode = msgspec.json.Decoder(Tracked).decode


def read_remembered(records: Iterable[bytes]) -> list[Tracked]:
    """The states that can be read; a Lease of another one counts as never seen before."""
    states, unreadable = [], 0
    for record in records:
        try:
            states.append(_decode(record))
        except msgspec.DecodeError:
            unreadable += 1
    if unreadable:
        logger.warning("%d remembered Leases cannot be read and are seen as new", unreadable)
    return states
