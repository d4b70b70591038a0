"""The merge patch of each form: exactly its fields, as client-go would write them."""

from __future__ import annotations

from datetime import timedelta

from leases.domain.edit import NOW, FieldEdit, HandOver, Release, YamlEdit, term_of
from leases.domain.lease import MAX_INT32
from tests.support.values.leases import after, lease

MOMENT = after(5) + timedelta(microseconds=7)
STAMP = "2026-11-20T12:00:05.000007Z"


def test_a_release_is_what_client_go_writes():
    released = {
        "holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": STAMP, "renewTime": STAMP,
    }  # fmt: skip
    for current in (lease("a"), lease(None), lease("a", strategy="OldestEmulationVersion")):
        assert Release().patch(current, now=MOMENT) == {"spec": released}


def test_a_hand_over_begins_a_term_and_counts_it():
    for known, counted in ((3, 4), (None, 1), (MAX_INT32, MAX_INT32)):
        assert HandOver("b").patch(lease("a", transitions=known), now=MOMENT) == {
            "spec": {
                "holderIdentity": "b",
                "acquireTime": STAMP,
                "renewTime": STAMP,
                "leaseTransitions": counted,
            }
        }


def test_a_hand_over_of_a_coordinated_lease_names_the_preferred_holder():
    current = lease("a", strategy="OldestEmulationVersion")
    assert HandOver("b").patch(current, now=MOMENT) == {"spec": {"preferredHolder": "b"}}


def test_an_edit_writes_its_fields_and_no_other():
    edit = FieldEdit(spec={"leaseDurationSeconds": 30, "strategy": None, "renewTime": NOW})
    assert edit.patch(lease("a"), now=MOMENT) == {
        "spec": {"leaseDurationSeconds": 30, "strategy": None, "renewTime": STAMP}
    }
    assert FieldEdit().patch(lease("a"), now=MOMENT) == {}


def test_no_holder_is_never_null():
    emptied = {"spec": {"holderIdentity": ""}}
    assert FieldEdit(spec={"holderIdentity": None}).patch(lease("a"), now=MOMENT) == emptied
    assert FieldEdit(spec={"holderIdentity": ""}).patch(lease("a"), now=MOMENT) == emptied
    assert YamlEdit({"spec": {"holderIdentity": None}}).patch(lease("a"), now=MOMENT) == emptied


def test_a_label_that_is_gone_already_is_not_removed_again():
    edit = FieldEdit(labels={"gone": None, "team": None, "tier": "1"}, annotations={"x": None})
    current = lease("a", labels={"team": "a"})
    assert edit.patch(current, now=MOMENT) == {"metadata": {"labels": {"team": None, "tier": "1"}}}


def test_a_renewal_stays_in_the_term_and_every_other_holding_is_another_term():
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
    assert len(term_of(lease("a" * 4000))) <= 64
