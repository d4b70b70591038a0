"""What a write brings about, in sentences with the numbers of this Lease."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from dashboard.forms.what_happens import WhatHappens, of_delete, of_edit, of_hand_over, of_release
from leases.domain.edit import FieldEdit
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.tracking.tracked_lease import Tracked
from tests.support.values.tracked_leases import NOW, tracked


def words(happens: WhatHappens) -> str:
    return " ".join((f"{happens.title}.", *happens.sentences))


def edit(known: Tracked | None = None, **spec: Any) -> str:
    return words(of_edit(known or tracked(), FieldEdit(spec=spec), NOW))


def coordinated() -> Tracked:
    known = tracked()
    spec = msgspec.structs.replace(known.lease.spec, strategy="OldestEmulationVersion")
    return known.replace(lease=msgspec.structs.replace(known.lease, spec=spec))


def test_a_live_holder_will_probably_take_it_back():
    happens = of_release(tracked(age=1.2), NOW)
    assert happens.title == ("Renewed 1.2 s ago: the holder will probably take it back within 2 s")
    said = words(happens)
    assert "cp-1 looks every 2 s, others every 2 s to 4.4 s: whoever looks first takes it." in said
    assert "cp-1 stops at its renew deadline, 10 s by default" in said
    assert "two may act at once for up to 12 s" in said
    assert happens.phase == "late"


@pytest.mark.parametrize("kind", [Kind.LOCK, Kind.ELECTION])
@pytest.mark.parametrize("duration", [15, None])
def test_release_and_delete_say_the_same_of_a_lease_that_was_never_renewed(kind, duration):
    phase = Phase.HELD if duration else Phase.UNTIMED
    known = tracked(kind=kind, age=5, held=5, duration=duration, phase=phase, renewals_seen=0)
    titles = {act(known, NOW).title for act in (of_release, of_delete)}
    assert titles == {"Never renewed: cp-1 may still rely on it"}


def test_a_silent_holder_is_probably_gone():
    happens = of_release(tracked(phase=Phase.EXPIRED, age=250), NOW)
    assert words(happens) == (
        "Silent for 4 m 10 s: the holder is probably gone. "
        "Whoever looks first takes it, usually within 2 s."
    )


def test_of_a_cluster_that_is_not_live_it_claims_no_present_state():
    as_of = NOW - timedelta(seconds=44)
    for phase in (Phase.HELD, Phase.EXPIRED, Phase.VACANT):
        happens = of_release(tracked(age=45, phase=phase), NOW, as_of)
        assert happens.title == (
            "Its present state is not known: what you see was known at 12:03:39"
        )
        assert "By now somebody else may hold it, or nobody." in happens.sentences
        assert "Renewed" not in words(happens)
    read_since = of_release(tracked(age=1.2), NOW, as_of)
    assert read_since == of_release(tracked(age=1.2), NOW)


def test_the_numbers_follow_the_duration_and_the_cadence_of_the_lease():
    said = words(of_release(tracked(duration=60, cadence_seconds=5.0), NOW))
    assert "renew deadline, 40 s by default: two may act at once for up to 45 s" in said


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        (tracked(holder=None, phase=Phase.VACANT), "Nobody holds it now."),
        (tracked(kind=Kind.HEARTBEAT, cadence_seconds=10.0, duration=40),
         "The next heartbeat names the holder again, within 10 s."),
        (tracked(kind=Kind.LOCK), "cp-1 may not notice that it lost the Lease: then both act."),
        (tracked(phase=Phase.LATE, age=9), "Silent for 9.0 s: the holder may be gone, or slow."),
        (coordinated(), "The API server gives it to its best candidate within 5 s."),
    ],
)  # fmt: skip
def test_each_kind_of_lease_is_released_in_its_own_way(known, sentence):
    assert sentence in words(of_release(known, NOW))


def test_a_hand_over_counts_the_transition_and_says_who_may_act():
    said = words(of_hand_over(tracked(), "cp-2", NOW))
    assert said.startswith("Two may act at once for up to 12 s.")
    assert "rewritten in the name of cp-2, transitions 3 to 4." in said
    assert said.endswith("If cp-2 is not running, nobody really holds it until it runs out: 15 s.")


def test_a_hand_over_of_an_expired_lease_takes_it_from_nobody():
    said = words(of_hand_over(tracked(phase=Phase.EXPIRED, age=60), "cp-2", NOW))
    assert said.startswith("Nobody else holds it now.")
    assert "stops" not in said


def test_a_coordinated_hand_over_asks_the_api_server():
    said = words(of_hand_over(coordinated(), "cp-2", NOW))
    assert "preferredHolder is set: cp-1 stops renewing within 12 s." in said
    assert "Then the API server gives it to cp-2, if that is a candidate, within 10 s." in said


@pytest.mark.parametrize(
    ("known", "who"),
    [
        (tracked(), "whoever looks may take it, while cp-1 still acts: two holders"),
        (coordinated(), "the API server may give it to another candidate, while cp-1"),
        (tracked(kind=Kind.HEARTBEAT), "Whoever watches it then takes the holder for"),
    ],
)
def test_a_duration_below_the_learned_cadence_is_two_holders_at_once(known, who):
    said = edit(known, leaseDurationSeconds=1)
    assert "cp-1 renews every 2 s: the Lease expires 1 s after each renewal" in said
    assert "stays expired for 1 s, until the next one." in said
    assert who in said
    assert "stays expired" not in edit(known, leaseDurationSeconds=3)
    assert "stays expired" not in edit(known, leaseDurationSeconds=1, holderIdentity="cp-2")


def test_an_edit_of_nothing_changes_nothing():
    assert edit() == "What this means. You changed no field: saving changes nothing."


def with_spec(known: Tracked, **spec: Any) -> Tracked:
    lease = known.lease
    changed = msgspec.structs.replace(lease.spec, **spec)
    return known.replace(lease=msgspec.structs.replace(lease, spec=changed))


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (15, 30, "If the holder dies, others wait 30 s instead of 15 s."),
        (None, 30, "If the holder dies, others wait 30 s; until now it could not expire."),
        (15, None, "It can no longer expire: a dead holder keeps it until somebody edits it."),
    ],
)
def test_the_form_shows_how_long_others_wait_for_a_duration(before, after, sentence):
    known = with_spec(tracked(kind=Kind.HEARTBEAT), lease_duration_seconds=before)
    assert edit(known, leaseDurationSeconds=after) == f"What this means. {sentence}"
    own = "client-go writes its own duration with its next renewal, within 2 s"
    assert own in edit(leaseDurationSeconds=after)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"holderIdentity": None}, "Release also writes a duration of 1 s"),
        ({"holderIdentity": "cp-2"}, "Hand over also writes both times"),
        ({"holderIdentity": "cp-2"}, "nobody really holds it until it runs out: 15 s."),
        ({"renewTime": "now"}, "The holder overwrites renewTime, within 2 s."),
        ({"acquireTime": "now"}, "Another acquireTime begins another term in the history."),
        ({"leaseTransitions": 9}, "client-go counts on from this number"),
        ({"strategy": "OldestEmulationVersion"}, "The API server elects the holder from now on"),
        ({"strategy": None}, "The API server no longer elects the holder"),
        ({"preferredHolder": "cp-2"}, "cp-1 no longer renews, so that cp-2 can be elected."),
    ],
)
def test_each_field_says_what_it_brings_about(spec, sentence):
    assert sentence in edit(**spec)


def test_a_lease_without_renew_time_cannot_expire_whatever_its_duration():
    never = with_spec(tracked(kind=Kind.LOCK, duration=None, phase=Phase.UNTIMED), renew_time=None)
    said = edit(never, holderIdentity="carol", leaseDurationSeconds=30)
    kept = "cannot expire: a dead holder keeps it until somebody edits it."
    assert f"Without renewTime it still {kept}" in said
    assert "If carol is not running, nobody really holds it until somebody edits it again." in said
    assert "30 s" not in said
    assert f"It still {kept}" in edit(never, renewTime="now")
    timed = with_spec(never, lease_duration_seconds=15)
    said = edit(timed, renewTime="now")
    assert "If the holder dies, others wait 15 s; until now it could not expire." in said
    said = edit(renewTime=None)
    assert f"Without renewTime it can no longer {kept[7:]}" in said
    assert "Contenders count" not in said
    expired = tracked(phase=Phase.EXPIRED, age=60)
    assert "wait the whole duration again" not in edit(expired, renewTime=None)


def test_labels_renew_nothing():
    said = words(of_edit(tracked(), FieldEdit(labels={"a": "b"}), NOW))
    assert said == "What this means. Labels and annotations renew nothing: the term goes on."


def test_an_edit_of_an_expired_lease_that_makes_others_wait_again_says_so():
    expired = tracked(phase=Phase.EXPIRED, age=60)
    again = "wait the whole duration again, as after a renewal, though cp-1 did not renew it."
    assert again in edit(expired, leaseDurationSeconds=20)
    own = "client-go writes its own duration when it acquires or renews: to keep this"
    assert own in edit(expired, leaseDurationSeconds=20)
    assert again in edit(expired, acquireTime="now")
    assert again in edit(expired, renewTime="now")
    assert again not in edit(expired, leaseDurationSeconds=None)  # nobody waits for it any more
    assert again not in edit(expired, holderIdentity="cp-2", renewTime="now")
    assert again not in edit(expired, leaseTransitions=9)
    assert again not in edit(leaseDurationSeconds=20)
