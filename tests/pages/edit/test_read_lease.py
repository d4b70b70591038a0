"""A Lease that was just read is judged by what it says, before the watch reports it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from dashboard.forms.form_page import as_read
from leases.domain.lease import Lease
from leases.domain.phase import Phase
from leases.tracking.tracked_lease import Tracked
from tests.support.values.tracked_leases import NOW, tracked


def read(known: Tracked, current: Lease, *, as_of: datetime = NOW) -> Tracked:
    return as_read("a", known, current, NOW, as_of=as_of)


def test_a_lease_that_moved_before_it_was_read_is_observed_now():
    """Its writer may leave an old renewTime: the watch judges it by our clock, as we do."""
    known = tracked(holder="cp-1", phase=Phase.HELD, age=3)
    taken = msgspec.structs.replace(
        known.lease.spec, holder_identity="other-9", renew_time=NOW - timedelta(seconds=600)
    )
    another = msgspec.structs.replace(known.lease.metadata, resource_version="99")
    seen = read(known, Lease(another, taken))
    assert (seen.holder, seen.phase, seen.observed_at) == ("other-9", Phase.HELD, NOW)
    labelled = read(known, Lease(another, known.lease.spec))
    assert labelled.observed_at == known.observed_at


def test_a_lease_read_from_the_cluster_is_judged_by_what_it_says_now():
    known = tracked(holder="cp-1", phase=Phase.EXPIRED, age=600)
    renewed = msgspec.structs.replace(
        known.lease.spec,
        holder_identity="cp-9",
        renew_time=NOW - timedelta(seconds=2),
    )
    anew = msgspec.structs.replace(known.lease.metadata, resource_version="99")
    seen = read(known, Lease(anew, renewed))
    assert (seen.holder, seen.phase) == ("cp-9", Phase.HELD)
    vacant = msgspec.structs.replace(renewed, holder_identity="")
    assert read(known, Lease(anew, vacant)).phase is Phase.VACANT
    future = msgspec.structs.replace(renewed, renew_time=datetime(9999, 12, 31, tzinfo=UTC))
    assert read(known, Lease(anew, future)).observed_at == NOW


def test_a_holder_came_when_it_was_read_whatever_acquire_time_says():
    """kubectl names a holder and leaves the acquireTime of an earlier one."""
    known = tracked(holder=None, phase=Phase.VACANT, age=3600)
    named = msgspec.structs.replace(known.lease.spec, holder_identity="eve")
    version = msgspec.structs.replace(known.lease.metadata, resource_version="99")
    assert read(known, Lease(version, named)).held_since == NOW
    anew = msgspec.structs.replace(version, uid="another")
    assert read(known, Lease(anew, named)).held_since == NOW


def test_behind_the_watch_a_holder_came_when_its_acquire_time_says():
    known, minute = tracked(holder="cp-1", age=90), timedelta(minutes=1)
    came = NOW - minute / 2
    taken = msgspec.structs.replace(
        known.lease.spec, holder_identity="eve", acquire_time=came, renew_time=came
    )
    version = msgspec.structs.replace(known.lease.metadata, resource_version="99")
    seen = read(known, Lease(version, taken), as_of=NOW - minute)
    assert (seen.held_since, seen.phase) == (came, Phase.EXPIRED)
