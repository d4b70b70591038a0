"""An edit changes the fields that a person touched, and no other: for any Lease and any input."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dashboard.pages.edit.form import INT32_MAX, EditLeaseForm, initial_of
from dashboard.pages.edit.preview import as_read
from leases.domain.lease import Lease
from leases.domain.lease_edit import merge_patch, term_of
from leases.domain.phase import Phase
from tests.support.values.tracked_leases import NOW, tracked

HOLDERS = st.text(max_size=40) | st.sampled_from(["", " cp-1 ", "a\0b", "a\r\nb", "x" * 5000])
DURATIONS = st.none() | st.integers(1, INT32_MAX)
TYPED = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=20)
# What a person can do to a field: leave it, empty it, or type something.
OF_HOLDER = st.none() | st.just("") | TYPED
OF_DURATION = st.none() | st.just("") | st.integers(1, INT32_MAX).map(str)
OTHERS = st.dictionaries(st.sampled_from(["strategy", "x-unknown", "preferredHolder"]), st.text())


@st.composite
def leases(draw: st.DrawFn) -> dict[str, Any]:
    """A Lease as the API sends it, with fields that Leaseboard does not know."""
    spec = {
        "holderIdentity": draw(st.none() | HOLDERS),
        "leaseDurationSeconds": draw(DURATIONS),
        "leaseTransitions": draw(st.none() | st.integers(0, INT32_MAX)),
        "acquireTime": draw(st.none() | st.just("2026-11-20T12:00:00.000000Z")),
        "renewTime": draw(st.none() | st.just("2026-11-20T12:04:00.000000Z")),
    }
    set_fields = {name: value for name, value in spec.items() if value is not None}
    return {
        "metadata": {
            "name": "a",
            "namespace": "b",
            "uid": "u",
            "resourceVersion": "7",
            "labels": draw(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)),
        },
        "spec": set_fields | draw(OTHERS),
        "x-unknown": draw(st.none() | st.text(max_size=5)),
    }


@given(shown=leases(), now=leases(), holder=OF_HOLDER, duration=OF_DURATION)
def test_the_request_changes_exactly_what_was_touched(shown, now, holder, duration):
    """`shown`: the Lease that the form was drawn for; `now`: the Lease that is written to."""
    before, current = as_lease(shown), as_lease(now)
    sent = as_browsers_send(initial_of(before))
    data = sent | {"reason": "drill"}
    data |= {} if holder is None else {"holder_identity": holder}
    data |= {} if duration is None else {"duration_seconds": duration}
    form = EditLeaseForm(data)
    assert form.is_valid(), form.errors

    after = merged(now, merge_patch(current, form.wanted(), now=NOW))

    holder_touched = holder is not None and holder.strip() != sent["holder_identity"].strip()
    duration_touched = duration is not None and duration != sent["duration_seconds"]
    spec = {**now["spec"]}
    if duration_touched:
        spec["leaseDurationSeconds"] = int(duration) if duration else None
    if holder_touched and (holder.strip() or None) != current.holder:
        spec |= a_new_term(current, holder.strip(), keeps_duration=duration_touched)
    expected = now | {"spec": {name: value for name, value in spec.items() if value is not None}}
    assert after == expected


@given(shown=leases(), now=leases(), holder=OF_HOLDER, duration=OF_DURATION)
def test_a_rebased_form_keeps_what_was_typed_and_follows_the_cluster_elsewhere(
    shown, now, holder, duration
):
    data = as_browsers_send(initial_of(as_lease(shown))) | {"reason": "drill"}
    data |= {} if holder is None else {"holder_identity": holder}
    data |= {} if duration is None else {"duration_seconds": duration}
    form = EditLeaseForm(data)
    current = as_lease(now)
    rebased = form.rebased(current)
    assert rebased.data["reason"] == "drill"
    assert rebased.data["seen_term"] == term_of(current)
    if form.holder_touched:
        assert rebased.data["holder_identity"] == data["holder_identity"]
    else:
        assert not rebased.holder_touched
    if form.duration_touched:
        assert rebased.data["duration_seconds"] == data["duration_seconds"]
    else:
        assert not rebased.duration_touched


def test_a_lease_read_from_the_cluster_is_judged_by_what_it_says_now():
    known = tracked(holder="cp-1", phase=Phase.EXPIRED, age=600)
    renewed = msgspec.structs.replace(
        known.lease.spec,
        holder_identity="cp-9",
        renew_time=NOW - timedelta(seconds=2),
    )
    seen = as_read(known, Lease(known.lease.metadata, renewed), NOW)
    assert (seen.holder, seen.phase) == ("cp-9", Phase.HELD)
    vacant = msgspec.structs.replace(renewed, holder_identity="")
    assert as_read(known, Lease(known.lease.metadata, vacant), NOW).phase is Phase.VACANT
    future = msgspec.structs.replace(renewed, renew_time=datetime(9999, 12, 31, tzinfo=UTC))
    assert as_read(known, Lease(known.lease.metadata, future), NOW).observed_at == NOW


def as_lease(raw: dict[str, Any]) -> Lease:
    return msgspec.convert(raw, Lease, strict=False)


def as_browsers_send(initial: dict[str, object]) -> dict[str, str]:
    """An <input> has no line breaks, and HTML has no NUL."""
    texts = {name: "" if value is None else str(value) for name, value in initial.items()}
    gone = {ord("\r"): None, ord("\n"): None, 0: "\ufffd"}
    return {name: text.translate(gone) for name, text in texts.items()}


def a_new_term(current: Lease, holder: str, *, keeps_duration: bool) -> dict[str, Any]:
    """What a change of holder brings with it, as client-go writes it."""
    moment = "2026-11-20T12:04:23.000000Z"
    term = {"holderIdentity": holder, "acquireTime": moment, "renewTime": moment}
    if holder:
        counted = (current.spec.lease_transitions or 0) + 1
        return term | {"leaseTransitions": min(counted, INT32_MAX)}
    return term if keeps_duration else term | {"leaseDurationSeconds": 1}


def merged(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7386."""
    result = copy.deepcopy(target)
    for name, value in patch.items():
        if isinstance(value, dict):
            result[name] = merged(result.get(name) or {}, value)
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = value
    return result
