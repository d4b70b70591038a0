"""Decide whether to send a further message about an incident, and at which stage."""

from __future__ import annotations

from leases.domain.cause.incident import Incident
from leases.domain.notify.gravity import Gravity, gravity
from leases.domain.notify.message import Message, Stage

MORE_LEASES = 3  # at least so many more than it said, and twice as many, is worse
_ORDER = (Gravity.INFO, Gravity.WARNING, Gravity.CRITICAL)


def next_stage(incident: Incident, last: Message | None) -> Stage | None:
    """The stage of the next message after the last one; None: there is no news."""
    over = incident.ended is not None or incident.part_of is not None
    if last is None:
        return Stage.OVER if over else Stage.OPENED
    if last.stage is Stage.OVER:
        return None if over else Stage.OPENED  # it goes on again
    if over:
        return Stage.OVER
    worse = _ORDER.index(gravity(incident)) > _ORDER.index(last.severity)
    number = len(incident.leases)
    more = number >= max(2 * last.leases_total, last.leases_total + MORE_LEASES)
    return Stage.WORSENED if worse or more else None
