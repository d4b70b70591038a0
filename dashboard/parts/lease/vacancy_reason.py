"""Why it is no problem that nobody holds a Lease, in words."""

from __future__ import annotations

from leases.tracking.tracked_lease import Tracked

ABANDONED, MAY_BE_VACANT = "abandoned", "may be vacant"


def excuse_of(tracked: Tracked) -> str:
    """Two words at most, for a row; "" if there is none."""
    if not tracked.excused:
        return ""
    return ABANDONED if tracked.abandoned else MAY_BE_VACANT


def excuse_in_full(tracked: Tracked) -> str:
    """A sentence for the page of the Lease."""
    if not tracked.excused:
        return ""
    if tracked.abandoned:
        return "Abandoned: nobody is expected to hold it again, so it counts as no problem."
    return f"It may be vacant: {tracked.lasting.may_be_vacant} said so. It counts as no problem."
