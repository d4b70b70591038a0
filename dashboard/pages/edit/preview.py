"""What an edit would do to a Lease, and where it conflicts with the Lease as it is now.

The consequences are those of client-go (leaderelection.go): a holder stops when it could not renew
for its renew deadline, and each of its renewals writes its own duration.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from dashboard.parts.formatting import seconds
from dashboard.parts.frame.yaml_text import diff_lines, to_yaml, without_managed_fields
from dashboard.parts.holder_name import holder_view, shown_holder
from leases.domain.cadence import EMPTY
from leases.domain.kind import Kind
from leases.domain.lease import Lease
from leases.domain.lease_edit import LeaseEdit, Result, changes_nothing, result_of
from leases.domain.phase import phase_of
from leases.tracking.tracked_lease import Tracked
from leases.wire.watch_decoding import lease_of

_BOTH_MAY_ACT = (
    "stops when its renew deadline has passed, 10 s by default. Until then both may act."
)
_WRITES_ITS_OWN = "client-go writes its own duration with its next renewal: to keep this, change it"


class Collision(msgspec.Struct, frozen=True):
    """A field in which the typed value differs from the Lease's."""

    field: str
    yours: str
    theirs: str


def preview_view(
    before: dict[str, Any], after: dict[str, Any], wanted: LeaseEdit, *, kind: Kind
) -> dict[str, Any]:
    """Compare the spec, and other parts only if they differ."""
    sides = [without_managed_fields(side) for side in (before, after)]
    parts = [part for part in sides[1] if part == "spec" or sides[0].get(part) != sides[1][part]]
    texts = [to_yaml({part: side[part] for part in parts if part in side}) for side in sides]
    current = lease_of(before)
    return {"diff": diff_lines(*texts), "means": consequences(current, wanted, kind=kind)}


def consequences(current: Lease, wanted: LeaseEdit, *, kind: Kind) -> tuple[str, ...]:
    after = result_of(current, wanted)
    if changes_nothing(current, wanted):
        return ("The Lease says this already: saving changes nothing.",)
    if after.holder is None and current.holder is None:
        return ("Nobody holds it: whoever acquires it writes a duration of its own.",)
    if after.holder == current.holder:
        return _of_duration(current.spec.lease_duration_seconds, after.duration_seconds, kind)
    return _of_holder(current.holder, after, kind)


def collisions(
    current: Lease, *, holder: str | None, duration: str | None
) -> tuple[Collision, ...]:
    """Fields that differ from the Lease; None means that the person did not touch the field."""
    found = []
    if holder is not None:
        found.append(("holderIdentity", holder or "nobody", current.holder or "nobody"))
    if duration is not None:
        theirs = str(current.spec.lease_duration_seconds or "not set")
        found.append(("leaseDurationSeconds", duration or "not set", theirs))
    return tuple(
        Collision(field, shown_holder(yours), shown_holder(theirs))
        for field, yours, theirs in found
        if yours != theirs
    )


def as_read(tracked: Tracked, current: Lease, now: datetime) -> Tracked:
    """A Lease just read from the cluster, before the watch has reported its present term."""
    observed_at = min(now, current.spec.renew_time or now)
    read = tracked.replace(
        lease=current,
        observed_at=observed_at,
        estimated=True,
        renewals_seen=0,
        intervals=EMPTY,
        phase_since=observed_at,
    )
    held_since = None if read.holder is None else current.spec.acquire_time
    return read.replace(phase=phase_of(read, now), held_since=held_since)


def _of_holder(before: str | None, after: Result, kind: Kind) -> tuple[str, ...]:
    said = []
    if after.holder is None:
        said.append(
            f"Whoever looks first acquires it; {_short(before)} looks too and may win again."
        )
        loser = f"If another one wins, {_short(before)}"
    else:
        loser = f"{_short(before)} can no longer renew it and"
    if before is not None:
        is_election = kind is Kind.ELECTION
        said.append(f"{loser} {_BOTH_MAY_ACT if is_election else 'may not notice: then both act.'}")
    if after.holder is not None:
        lasts = after.duration_seconds
        until = f"the Lease expires: {seconds(lasts)}" if lasts else "somebody edits it again"
        said.append(f"If {_short(after.holder)} is not running, nobody acts until {until}.")
    return tuple(said)


def _of_duration(before: int | None, after: int | None, kind: Kind) -> tuple[str, ...]:
    if after is None:
        said = "It can no longer expire: a dead holder keeps it until somebody edits it."
    elif before is None:
        said = f"If the holder dies, others wait {seconds(after)}; until now it could not expire."
    else:
        said = f"If the holder dies, others wait {seconds(after)} instead of {seconds(before)}."
    return (said, f"{_WRITES_ITS_OWN} there.") if kind is Kind.ELECTION else (said,)


def _short(identity: str | None) -> str:
    holder = holder_view(identity)
    return holder.short if holder else "nobody"
