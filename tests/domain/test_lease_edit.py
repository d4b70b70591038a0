"""What a person's edit leaves in the Lease, and the merge patch that says so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from leases.domain.lease import MAX_INT32, Lease
from leases.domain.lease_edit import LeaseEdit, changes_nothing, merge_patch, result_of, term_of
from tests.support.values.leases import after, lease

NOW = after(5) + timedelta(microseconds=7)
STAMP = "2026-11-20T12:00:05.000007Z"


@pytest.mark.parametrize(
    ("current", "wanted", "spec"),
    [
        (lease("a"), LeaseEdit(), {}),
        (lease("a"), LeaseEdit(holder="a", duration_seconds=15), {}),
        (lease("a"), LeaseEdit(duration_seconds=30), {"leaseDurationSeconds": 30}),
        (lease("a"), LeaseEdit(duration_seconds=None), {"leaseDurationSeconds": None}),
        (
            lease("a", transitions=3),
            LeaseEdit(holder="b"),
            {
                "holderIdentity": "b",
                "acquireTime": STAMP,
                "renewTime": STAMP,
                "leaseTransitions": 4,
            },
        ),
        (
            lease(None, transitions=None),
            LeaseEdit(holder="b"),
            {
                "holderIdentity": "b",
                "acquireTime": STAMP,
                "renewTime": STAMP,
                "leaseTransitions": 1,
            },
        ),
        (
            lease("a", transitions=MAX_INT32),
            LeaseEdit(holder="b"),
            {
                "holderIdentity": "b",
                "acquireTime": STAMP,
                "renewTime": STAMP,
                "leaseTransitions": MAX_INT32,
            },
        ),
        (
            lease("a"),
            LeaseEdit(holder=None),
            {
                "leaseDurationSeconds": 1,
                "holderIdentity": "",
                "acquireTime": STAMP,
                "renewTime": STAMP,
            },
        ),
        (
            lease("a"),
            LeaseEdit(holder=None, duration_seconds=15),
            {"holderIdentity": "", "acquireTime": STAMP, "renewTime": STAMP},
        ),
    ],
)
def test_a_patch_names_what_the_edit_changes_and_nothing_else(
    current: Lease, wanted: LeaseEdit, spec: dict[str, Any]
) -> None:
    patch = merge_patch(current, wanted, now=NOW)
    assert patch == {"metadata": {"resourceVersion": "1"}, "spec": spec}
    assert changes_nothing(current, wanted) is (not spec)


def test_only_a_release_shortens_a_duration_that_nobody_touched() -> None:
    released = result_of(lease("a"), LeaseEdit(holder=None))
    assert (released.holder, released.duration_seconds) == (None, 1)
    vacant = result_of(lease(""), LeaseEdit(holder=None))
    assert (vacant.holder, vacant.duration_seconds) == (None, 15)
    handed_over = result_of(lease("a"), LeaseEdit(holder="b"))
    assert (handed_over.holder, handed_over.duration_seconds) == ("b", 15)


def test_a_renewal_stays_in_the_term_and_every_other_holding_is_another_term() -> None:
    term = term_of(lease("a"))
    assert term == term_of(lease("a", renewed=60, version=9, duration=30, labels={"x": "y"}))
    others = [
        lease("b"),
        lease("a", uid="uid-2"),
        lease("a", acquired=1),
        lease("a", transitions=1),
        lease(""),
    ]
    assert len({term, *map(term_of, others)}) == 6
    assert term_of(lease("a", transitions=None)) == term_of(lease("a", transitions=0))
    assert len(term_of(lease("a" * 4000))) == 64
