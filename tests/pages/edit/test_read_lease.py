"""A Lease that was just read is judged by what it says, before the watch reports it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from dashboard.forms.form_page import as_read
from leases.domain.lease import Lease
from leases.domain.phase import Phase
from tests.support.values.tracked_leases import NOW, tracked


def test_a_lease_that_moved_before_it_was_read_is_observed_now():
    """Its writer may leave an old renewTime: the watch judges it by our clock, as we do."""
    known = tracked(holder="cp-1", phase=Phase.HELD, age=3)
    taken = msgspec.structs.replace(
        known.lease.spec, holder_identity="other-9", renew_time=NOW - timedelta(seconds=600)
    )
    another = msgspec.structs.replace(known.lease.metadata, resource_version="99")
    seen = as_read(known, Lease(another, taken), NOW)
    assert (seen.holder, seen.phase, seen.observed_at) == ("other-9", Phase.HELD, NOW)
    labelled = as_read(known, Lease(another, known.lease.spec), NOW)
    assert labelled.observed_at == known.observed_at


def test_a_lease_read_from_the_cluster_is_judged_by_what_it_says_now():
    known = tracked(holder="cp-1", phase=Phase.EXPIRED, age=600)
    renewed = msgspec.structs.replace(
        known.lease.spec,
        holder_identity="cp-9",
        renew_time=NOW - timedelta(seconds=2),
    )
    anew = msgspec.structs.replace(known.lease.metadata, resource_version="99")
    seen = as_read(known, Lease(anew, renewed), NOW)
    assert (seen.holder, seen.phase) == ("cp-9", Phase.HELD)
    vacant = msgspec.structs.replace(renewed, holder_identity="")
    assert as_read(known, Lease(anew, vacant), NOW).phase is Phase.VACANT
    future = msgspec.structs.replace(renewed, renew_time=datetime(9999, 12, 31, tzinfo=UTC))
    assert as_read(known, Lease(anew, future), NOW).observed_at == NOW
