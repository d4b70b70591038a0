"""What counts as a change, and what does not."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from msgspec.structs import replace

from leases.domain.change import (
    Change,
    ChangeType,
    Observation,
    appeared,
    identity,
    ran_out,
    vanished,
)
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from tests.domain.changes.judged import changes, relisted
from tests.support.values.known_changes import Known
from tests.support.values.leases import NOON, after, lease


def words(*args: Any, **kwargs: Any) -> list[str]:
    return [change.change.value for change in changes(*args, **kwargs)]


def test_a_renewal_is_no_change() -> None:
    assert words(Known(lease=lease()), lease(renewed=2, version=2)) == []


def test_a_first_holder_after_a_vacancy_is_acquired_and_ends_the_gap() -> None:
    vacant = Known(lease=lease(""), phase=Phase.VACANT, gap_since=after(-3))
    (change,) = changes(vacant, lease("b", acquired=2, renewed=2, transitions=1, version=7))
    assert replace(change, own_identity="") == Change(
        cluster="c",
        namespace="default",
        name="controller",
        uid="uid-1",
        kind=Kind.ELECTION,
        change=ChangeType.ACQUIRED,
        at=after(2),
        observed_at=after(2),
        holder="b",
        previous_holder=None,
        resource_version="7",
        transitions=1,
        gap_seconds=5,
    )


def test_a_release_as_client_go_writes_it_is_released_alone() -> None:
    (change,) = changes(Known(lease=lease()), lease("", duration=1, acquired=2, renewed=2))
    assert (change.change, change.holder, change.previous_holder) == ("released", None, "a")
    assert (change.fields, change.gap_seconds) == ((), None)


def test_another_holder_in_a_valid_lease_is_replaced_and_afterwards_taken_over() -> None:
    then = lease("b", acquired=15, renewed=15, transitions=1)
    assert words(Known(lease=lease()), then, 14.999999) == ["replaced"]
    expired = Known(lease=lease(), phase=Phase.EXPIRED, gap_since=after(15))
    (change,) = changes(expired, then, 15.5)
    assert (change.change, change.previous_holder, change.gap_seconds) == ("taken_over", "a", 0.5)


def test_another_holder_in_an_untimed_lease_is_replaced() -> None:
    assert words(Known(lease=lease(duration=None)), lease("b", duration=None), 999) == ["replaced"]


def test_a_renewal_after_the_expiry_is_recovered_with_the_gap() -> None:
    expired = Known(lease=lease(), phase=Phase.EXPIRED, gap_since=after(15))
    (change,) = changes(expired, lease(renewed=20), 20)
    assert (change.change, change.holder, change.previous_holder) == ("recovered", "a", "a")
    assert change.gap_seconds == 5


def test_a_label_on_an_expired_lease_recovers_nothing() -> None:
    expired = Known(lease=lease(), phase=Phase.EXPIRED, gap_since=after(15))
    assert words(expired, lease(labels={"a": "b"}), 20) == ["reconfigured"]


def test_a_new_acquire_time_under_the_old_name_is_restarted() -> None:
    assert words(Known(lease=lease()), lease(acquired=2, renewed=2)) == ["restarted"]
    expired = Known(lease=lease(), phase=Phase.EXPIRED, gap_since=after(15))
    (change,) = changes(expired, lease(acquired=20, renewed=20), 20)
    assert (change.change, change.gap_seconds) == ("restarted", 5)


def test_the_acquire_time_that_a_first_renewal_adds_restarts_nothing() -> None:
    handed = Known(lease=lease(acquired=None), settled=False)
    assert words(handed, lease(acquired=1, renewed=2)) == []
    settled = Known(lease=lease(acquired=None))
    assert words(settled, lease(acquired=1, renewed=2)) == ["restarted"]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"duration": 30}, "leaseDurationSeconds"),
        ({"strategy": "OldestEmulationVersion"}, "strategy"),
        ({"preferred": "b"}, "preferredHolder"),
        ({"labels": {"a": "b"}}, "labels"),
        ({"annotations": {"a": "b"}}, "annotations"),
    ],
)
def test_a_changed_configuration_is_reconfigured(changed: dict[str, Any], field: str) -> None:
    (change,) = changes(Known(lease=lease()), lease(**changed))
    assert (change.change, change.fields) == ("reconfigured", (field,))
    assert (change.holder, change.previous_holder) == ("a", "a")
    assert words(Known(lease=lease()), lease("b", **changed)) == ["replaced"]
    assert words(Known(lease=lease()), lease(renewed=1, **changed)) == ["reconfigured"]
    new_holder = Known(lease=lease(), settled=False)
    assert words(new_holder, lease(renewed=1, **changed)) == []
    assert words(new_holder, lease(renewed=0, **changed)) == ["reconfigured"]


def test_empty_and_absent_are_the_same_configuration() -> None:
    assert words(Known(lease=lease()), lease(labels={}, annotations={}, preferred="")) == []


def test_a_stamp_that_a_writer_renews_for_ever_reconfigures_nothing() -> None:
    stamp = "kyverno.io/last-request-time"
    before = Known(lease=lease(annotations={stamp: "1", "a": "b"}))
    assert words(before, lease(annotations={stamp: "2", "a": "b"})) == []
    assert words(before, lease(annotations={stamp: "2", "a": "c"})) == ["reconfigured"]


@pytest.mark.parametrize(
    ("holder", "acquired", "counter", "missed"),
    [
        ("b", 2, 1, 0),
        ("b", 2, 4, 3),
        ("b", 2, 0, 0),
        ("b", 2, None, 0),
        ("a", 2, 2, 1),
        ("", 2, 1, 1),
    ],
)
def test_the_counter_shows_how_many_changes_of_holder_were_missed(
    holder: str, acquired: float, counter: int | None, missed: int
) -> None:
    (change,) = changes(
        Known(lease=lease(transitions=0)),
        lease(holder, acquired=acquired, renewed=2, transitions=counter),
    )
    assert change.missed == missed


def test_created_and_deleted_name_who_holds_and_who_held() -> None:
    seen = Observation(now=after(1))
    created = appeared(
        "c", lease(), holder="a", kind=Kind.LOCK, seen=seen, at=after(1), gap_since=NOON
    )
    assert (created.change, created.holder, created.previous_holder) == ("created", "a", None)
    assert created.gap_seconds == 1
    deleted = vanished("c", Known(lease=lease()), lease(version=9), seen=seen, at=after(1))
    assert (deleted.change, deleted.holder, deleted.previous_holder) == ("deleted", None, "a")
    assert deleted.resource_version == "9"


def test_a_lease_is_created_and_deleted_once() -> None:
    live, listed = Observation(now=after(1)), relisted(60, 5)
    one, two = (
        appeared(
            "c",
            lease(version=v),
            holder="a",
            kind=Kind.LOCK,
            seen=seen,
            at=seen.now,
            gap_since=None,
        )
        for v, seen in ((1, live), (8, listed))
    )
    assert identity(one) == identity(two)
    gone = vanished("c", Known(lease=lease()), lease(), seen=live, at=after(1))
    assert identity(gone) != identity(one)


def _expired(renewal: str) -> str:
    return f"uid-1 expired  {hashlib.sha256(renewal.encode()).hexdigest()[:32]}"


def test_an_expiry_says_who_held_it_and_how_it_is_known() -> None:
    known = Known(lease=lease(version=4, transitions=2), kind=Kind.LOCK, rewritten="7")
    seen = ran_out("c", known, at=after(15), now=after(16), unseen_since=None)
    assert (seen.change, seen.cluster, seen.kind) == ("expired", "c", Kind.LOCK)
    assert (seen.at, seen.observed_at, seen.renewed_at) == (after(15), after(16), NOON)
    assert (seen.holder, seen.previous_holder) == ("a", "a")
    assert (seen.resource_version, seen.transitions, seen.missed) == ("", 2, 0)
    assert (seen.inferred, seen.inferred_since) == (False, None)
    assert seen.own_identity == _expired(f"{NOON.isoformat()} {NOON.isoformat()} 15 a 7")
    unseen = ran_out("c", Known(lease=lease()), at=after(15), now=after(16), unseen_since=after(9))
    assert (unseen.inferred, unseen.inferred_since) == (True, after(9))
    assert unseen.own_identity == _expired(f"{NOON.isoformat()} {NOON.isoformat()} 15 a")


def test_creations_and_deletions_say_where_when_and_of_what_kind() -> None:
    late = Observation(now=after(5), since=after(1))
    born = appeared(
        "c", lease(), holder=None, kind=Kind.LOCK, seen=late, at=after(4), gap_since=NOON
    )
    assert (born.cluster, born.kind, born.at, born.gap_seconds) == ("c", Kind.LOCK, after(4), None)
    assert (born.missed, born.own_identity, born.inferred_since) == (0, "", None)
    listed = appeared(
        "c", lease(), holder="a", kind=Kind.LOCK, seen=relisted(5, 1), at=after(4), gap_since=NOON
    )
    assert (listed.gap_seconds, listed.inferred_since) == (None, after(1))
    known = Known(lease=lease(), kind=Kind.HEARTBEAT)
    gone = vanished("c", known, lease(), seen=late, at=after(4))
    assert (gone.cluster, gone.kind, gone.at) == ("c", Kind.HEARTBEAT, after(4))
    assert gone.own_identity == ""


def test_missed_changes_are_counted_once() -> None:
    moved = lease(acquired=5, transitions=4, labels={"a": "b"}, renewed=5)
    restarted, reconfigured = changes(Known(lease=lease(transitions=1)), moved)
    assert (restarted.change, restarted.missed) == ("restarted", 2)
    assert (reconfigured.change, reconfigured.missed) == ("reconfigured", 0)
