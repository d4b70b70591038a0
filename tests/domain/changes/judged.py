"""Changes that an observation of a Lease makes."""

from __future__ import annotations

from leases.domain.change import Change, Observation, compare
from leases.domain.kind import Kind
from leases.domain.lease import Lease
from tests.support.values.known_changes import Known
from tests.support.values.leases import after


def changes(
    before: Known, then: Lease, seconds: float = 2, *, seen: Observation | None = None
) -> tuple[Change, ...]:
    seen = seen or Observation(now=after(seconds))
    return compare("c", before, then, holder=then.holder, kind=Kind.ELECTION, seen=seen)


def relisted(now: float, since: float) -> Observation:
    return Observation(now=after(now), since=after(since), inferred=True, listed=True)
