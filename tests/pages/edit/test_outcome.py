"""What the page says after a write: what the watch reported since."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from dashboard.pages.edit.outcome import ReportedOutcome, outcome_of
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.models import Edit
from leases.tracking.tracked_lease import Tracked
from tests.support.values.tracked_leases import NOW, tracked

WRITTEN = NOW - timedelta(seconds=10)


def write(action: str, version: str = "10", **more: Any) -> Edit:
    known: dict[str, Any] = {
        "at": WRITTEN, "closed_at": WRITTEN, "outcome": "done", "resource_version": version,
        "before": {"holderIdentity": "cp-1"}, "after": {},
    }  # fmt: skip
    return Edit(action=action, **(known | more))


def change(kind: ChangeType, seconds: float, version: str = "", **more: Any) -> Change:
    """`seconds` after the write."""
    at = WRITTEN + timedelta(seconds=seconds)
    return Change(
        cluster="a", namespace="kube-system", name="scheduler", uid="u", kind=Kind.ELECTION,
        change=kind, at=at, observed_at=at, resource_version=version, **more,
    )  # fmt: skip


def at_version(version: str, **more: Any) -> Tracked:
    known = tracked(**more)
    meta = msgspec.structs.replace(known.lease.metadata, resource_version=version)
    return known.replace(lease=msgspec.structs.replace(known.lease, metadata=meta))


def after(row: Edit, *changes: Change, known: Tracked | None = None) -> ReportedOutcome:
    return outcome_of(row, known or at_version("10"), list(reversed(changes)), NOW)


RELEASED = change(ChangeType.RELEASED, 0.1, "10", previous_holder="cp-1")
REPLACED = change(ChangeType.REPLACED, 0.1, "10", holder="cp-2", previous_holder="cp-1")
TO_CP2 = {"spec.holderIdentity": "cp-2"}


def test_nothing_is_claimed_before_the_watch_reports_it():
    found = after(write("lease.release"), known=at_version("9"))
    assert found.sentences == ("The watch has not reported it yet.",)
    assert not found.settled


@pytest.mark.parametrize(
    ("later", "sentence"),
    [
        ((), "Nobody has acquired it since, for 9.9 s."),
        (
            (change(ChangeType.ACQUIRED, 1.5, "11", holder="cp-1"),),
            "cp-1 took it back after 1.4 s.",
        ),
        ((change(ChangeType.ACQUIRED, 2.1, "11", holder="cp-2"),), "cp-2 acquired it after 2.0 s."),
        (
            (change(ChangeType.DELETED, 3.0, "12", previous_holder="cp-1"),),
            "The Lease was deleted since.",
        ),
    ],
)
def test_after_a_release(later, sentence):
    found = after(write("lease.release"), RELEASED, *later)
    assert found.title == "Released at 12:04:13.000"
    assert found.sentences == (sentence,)
    assert found.lines[0].change.change is ChangeType.RELEASED


@pytest.mark.parametrize(
    ("later", "known", "sentence"),
    [
        ((), {"age": 9.9}, "cp-2 has not renewed it yet, after 9.9 s."),
        ((), {"age": 1.0}, "cp-2 renews it: last seen 8.9 s after the write."),
        (
            (change(ChangeType.REPLACED, 0.9, "11", holder="cp-1"),),
            {},
            "cp-1 took it after 0.8 s.",
        ),
        (
            (change(ChangeType.EXPIRED, 5.1, holder="cp-2"),),
            {},
            "cp-2 never renewed it: it ran out after 5.0 s.",
        ),
    ],
)
def test_after_a_hand_over(later, known, sentence):
    row = write("lease.hand_over", after=TO_CP2)
    found = after(row, REPLACED, *later, known=at_version("10", holder="cp-2", **known))
    assert found.sentences == (sentence,)


def test_after_a_coordinated_hand_over():
    row = write("lease.hand_over", after={"spec.preferredHolder": "cp-2"})
    assert after(row).sentences == ("cp-2 does not hold it yet, after 10 s.",)
    taken = change(ChangeType.ACQUIRED, 4.0, "12", holder="cp-2")
    assert after(row, taken).sentences == ("cp-2 holds it, 4.0 s after that.",)


def test_after_an_edit_each_field_is_as_written_or_was_overwritten():
    row = write("lease.edit", after={"spec.leaseDurationSeconds": 15, "spec.strategy": None})
    assert after(row).sentences == ("leaseDurationSeconds is 15.", "strategy is not set.")
    longer = write(
        "lease.edit", after={"spec.leaseDurationSeconds": 30, "metadata.labels.a.b/c": "x"}
    )
    own = change(ChangeType.RECONFIGURED, 1.9, "11", fields=("leaseDurationSeconds",))
    assert after(longer, own).sentences == (
        "leaseDurationSeconds is 15, overwritten after 1.9 s.",
        "labels/a.b/c is not set by now.",
    )


def test_a_refusal_and_an_open_row_say_so():
    refused = after(write("lease.release", outcome="refused", detail="no"))
    assert (refused.phase, refused.sentences) == ("expired", ("no",))
    open_row = after(write("lease.release", outcome="intended", closed_at=None))
    assert open_row.title == "Sent; there is no answer yet"


def test_the_page_stops_looking_after_half_a_minute():
    old = WRITTEN - timedelta(seconds=30)
    assert after(write("lease.release", closed_at=old), RELEASED).settled


DELETED = change(ChangeType.DELETED, 0.1, "11", previous_holder="cp-1")
ANEW = change(ChangeType.CREATED, 1.8, "12", holder="cp-1")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ((), "The API server has deleted it. The watch reports it within moments."),
        ((DELETED,), "Nobody has made it anew since, for 9.9 s."),
        ((change(ChangeType.DELETED, 9.9, "11"),), "Nobody has made it anew since."),
        ((DELETED, ANEW), "cp-1 made it anew 1.7 s later."),
        (
            (DELETED, msgspec.structs.replace(ANEW, holder=None)),
            "Somebody made it anew 1.7 s later, without a holder.",
        ),
    ],
)
def test_a_delete_says_who_made_the_lease_anew(changes, sentence):
    earlier = change(ChangeType.DELETED, -60, "3", previous_holder="cp-9")
    row = write("lease.delete", "", request={"verb": "delete", "resource_version": "10"})
    found = after(row, earlier, *changes)
    assert found.title.startswith("Deleted at ")
    assert found.sentences == (sentence,)
    assert len(found.lines) == len(changes)
