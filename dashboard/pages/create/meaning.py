"""What a new Lease brings about, in sentences.

Source: client-go's leaderelection.go; its default retry period is 2 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.parts.formatting import seconds
from dashboard.parts.holder_name import holder_view
from leases.actions.create_lease import NewLease


def meaning_of(new: NewLease, *, kept: Mapping[str, Any]) -> tuple[str, ...]:
    """`kept` is the spec that the server would store."""
    said = []
    if "strategy" in kept:
        said.append("The API server chooses the holder among the LeaseCandidates of this name.")
    elif not new.holder:
        said.append(
            "It starts vacant. An elector of this name takes it within its retry period, "
            "2 s by default."
        )
    if new.holder:
        holder = holder_view(new.holder)
        who = holder.short if holder else new.holder
        said.append(f"It starts held by {who}, with transitions at 0.")
        lasts = new.duration_seconds
        until = f"it expires: {seconds(lasts)}" if lasts else "somebody edits it"
        said.append(f"If {who} does not run, nobody acts until {until}.")
    if new.duration_seconds is None:
        said.append("It is untimed: it never runs out, and no elector takes it from a holder.")
    return tuple(said)
