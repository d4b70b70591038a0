"""The words for a Lease whose newest write Leaseboard did not understand."""

from __future__ import annotations

from datetime import datetime

from dashboard.parts.formatting import when
from leases.tracking.tracked_lease import Tracked

UNKNOWN = "unknown"


def state_of(tracked: Tracked) -> str:
    """The phase to show: `unknown` if the newest write was not understood."""
    return tracked.phase.value if tracked.lasting.not_understood is None else UNKNOWN


def skipped_in_short(tracked: Tracked, now: datetime) -> str:
    """A sentence for a row; empty if the write was understood."""
    state = tracked.lasting.not_understood
    return "" if state is None else f"Its write at {when(state.since, now)} was not understood."


def skipped_in_full(tracked: Tracked, now: datetime) -> str:
    """The sentences for the Lease's page; empty if the write was understood."""
    state = tracked.lasting.not_understood
    if state is None:
        return ""
    first = f"Leaseboard did not understand the write that it saw at {when(state.at, now)}."
    if state.before is None:
        rest = "Nothing of this Lease has been understood yet."
    else:
        rest = "How it stands is not known: what is shown is from before."
    return f"{first} {state.reason} {rest} The next write that can be understood mends this."
