"""How an attempt to send ended."""

from __future__ import annotations

import msgspec


class DeliveryOutcome(msgspec.Struct, frozen=True):
    """`error` is a sentence for admins without any part of an address or a secret; "": sent."""

    error: str = ""
    retry_after: float = 0.0  # seconds that the receiver asked us to wait
