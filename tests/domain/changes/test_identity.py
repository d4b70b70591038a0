"""One change has one identity, whichever replica or run observes it."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from leases.domain.change import identity, ran_out
from leases.domain.phase import Phase
from leases.history.rows import as_text, story_of
from tests.domain.changes.judged import changes
from tests.support.values.known_changes import Known
from tests.support.values.leases import NOON, after, lease


def test_an_expiry_is_identified_by_the_renewal_that_ran_out() -> None:
    def expired(renewed: float, observed: float, **more: Any) -> str:
        known = Known(lease=lease(renewed=renewed, **more), observed_at=after(observed))
        at = after(observed + 15)
        return identity(ran_out("c", known, at=at, now=at, unseen_since=None))

    assert expired(0, 0.004, version=3) == expired(0, 0.009, version=4)  # another replica's clock
    assert expired(0, 0) != expired(2, 2)
    assert expired(0, 0) != expired(0, 0, uid="uid-2")
    assert expired(0, 0) != expired(0, 0, holder="b")
    edited = Known(lease=lease(), rewritten="7")
    by_hand = ran_out("c", edited, at=after(15), now=after(15), unseen_since=None)
    assert identity(by_hand) != expired(0, 0)


def test_other_changes_are_identified_by_their_write() -> None:
    (one,) = changes(Known(lease=lease()), lease("b", version=7), 3)
    (two,) = changes(Known(lease=lease()), lease("b", version=7), 4)
    (other,) = changes(Known(lease=lease()), lease("b", version=8), 4)
    assert identity(one) == identity(two) != identity(other)


def test_replicas_that_judge_a_write_by_different_clocks_mean_the_same_change() -> None:
    taker = lease("b", renewed=15, acquired=15, version=7)
    (in_time,) = changes(Known(lease=lease(), observed_at=after(0.1)), taker, 15.05)
    out = Known(lease=lease(), observed_at=after(0), phase=Phase.EXPIRED)
    (run_out,) = changes(out, taker, 15.01)
    assert (in_time.change, run_out.change) == ("replaced", "taken_over")
    assert identity(in_time) == identity(run_out)


def test_a_version_that_comes_again_after_a_restore_is_another_write() -> None:
    (one,) = changes(Known(lease=lease()), lease("b", renewed=3, version=7), 3)
    (other,) = changes(Known(lease=lease()), lease("b", renewed=900, version=7), 900)
    assert identity(one) != identity(other)


def test_an_identity_fits_its_column_however_long_the_holder() -> None:
    known = Known(lease=lease("h" * 5000))
    change = ran_out("c", known, at=after(15), now=after(15), unseen_since=None)
    assert len(identity(change)) < 400


def test_a_holding_is_identified_by_the_fields_that_renew_it() -> None:
    (released,) = changes(Known(lease=lease()), lease(None, acquired=None, renewed=2))
    renewal = hashlib.sha256(f" {after(2).isoformat()} 15 ".encode()).hexdigest()
    assert identity(released) == f"uid-1 term 1 {renewal[:32]}"
    expired = ran_out("c", Known(lease=lease()), at=NOON, now=NOON, unseen_since=None)
    assert identity(expired).startswith("uid-1 expired  ")


def test_a_story_names_it_as_earlier_versions_do() -> None:
    (change,) = changes(Known(lease=lease()), lease("b", version=7), 3)
    story = as_text([(identity(change), change)])
    ((named, fields),) = msgspec.json.decode(story)
    assert fields["stored_identity"] == named
    assert story_of(story.encode()) == ((named, change),)
