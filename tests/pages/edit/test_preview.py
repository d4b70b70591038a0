"""What an edit brings about, in sentences."""

from __future__ import annotations

import pytest

from dashboard.pages.edit.preview import collisions, consequences
from leases.domain.kind import Kind
from leases.domain.lease import Lease, LeaseSpec, ObjectMeta
from leases.domain.lease_edit import LeaseEdit

CP1 = "cp-1_8c2e41f0-5b1d-4f0e-9a57-2d9a3c1b7e44"


def means(
    holder: str | None,
    duration: int | None,
    *,
    now_held: str | None = CP1,
    lasts: int | None = 15,
    kind: Kind = Kind.ELECTION,
) -> str:
    wanted = LeaseEdit(holder=holder, duration_seconds=duration)
    return " ".join(consequences(lease(now_held, lasts), wanted, kind=kind))


def lease(holder: str | None, lasts: int | None) -> Lease:
    return Lease(ObjectMeta("a", "b", "u", "1", None), LeaseSpec(holder, lasts))


def test_the_same_changes_nothing():
    assert means(CP1, 15) == "The Lease says this already: saving changes nothing."


def test_another_holder_may_act_beside_the_present_one():
    said = means("cp-2", 15)
    assert said.startswith("cp-1 can no longer renew it and stops when its renew deadline")
    assert said.endswith("If cp-2 is not running, nobody acts until the Lease expires: 15 s.")


def test_only_an_election_is_known_to_have_a_renew_deadline():
    said = means("cp-2", None, kind=Kind.LOCK)
    assert "cp-1 can no longer renew it and may not notice: then both act." in said
    assert "nobody acts until somebody edits it again" in said
    assert "renew deadline" not in said


def test_a_release_may_be_won_by_the_same_holder():
    said = means(None, 15)
    assert said.startswith("Whoever looks first acquires it; cp-1 looks too and may win again.")
    assert "If another one wins, cp-1 stops" in said


def test_a_vacant_lease_is_taken_from_nobody():
    said = means("cp-2", 15, now_held=None)
    assert said == "If cp-2 is not running, nobody acts until the Lease expires: 15 s."


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (15, 30, "If the holder dies, others wait 30 s instead of 15 s."),
        (None, 30, "If the holder dies, others wait 30 s; until now it could not expire."),
        (15, None, "It can no longer expire: a dead holder keeps it until somebody edits it."),
    ],
)
def test_the_form_shows_how_long_others_wait_for_a_duration(before, after, sentence):
    assert means(CP1, after, lasts=before, kind=Kind.HEARTBEAT) == sentence
    assert "client-go writes its own duration" in means(CP1, after, lasts=before)


def test_only_fields_that_differ_collide():
    found = collisions(lease("cp-9", 15), holder="cp-2", duration="15")
    assert [(one.field, one.yours, one.theirs) for one in found] == [
        ("holderIdentity", "cp-2", "cp-9")
    ]
    assert not collisions(lease(None, None), holder="", duration="")


def test_a_field_that_nobody_touched_never_collides():
    assert not collisions(lease("cp-9", 15), holder=None, duration=None)
