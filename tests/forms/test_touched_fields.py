"""An edit sends the fields that a person touched, and no other: for any Lease and any input."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from dashboard.forms.edit_form import API_NAMES, EditForm
from leases.domain.edit import merged, term_of
from leases.domain.lease import MAX_INT32, Lease
from leases.wire.microtime import format_microtime
from tests.support.values.tracked_leases import NOW
from tests.support.values.untouched_form import as_typed

HOLDERS = st.text(max_size=40) | st.sampled_from(["", " cp-1 ", "a\0b", "a\r\nb", "x" * 5000])
NUMBERS = st.none() | st.integers(1, MAX_INT32)
TIMES = st.none() | st.sampled_from(
    ["2026-11-20T12:00:00.000000Z", "2026-11-20T12:04:00.000001Z", "9999-12-31T23:59:59.999999Z"]
)
WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)
TEXTS = st.text(max_size=12) | st.sampled_from(["two\nlines", "\nfirst", "end\n", "a\r\nb", "\0"])
PAIR = st.dictionaries(WORDS, TEXTS, max_size=4)
OTHERS = st.dictionaries(st.sampled_from(["x-unknown", "colour"]), st.text() | st.lists(st.text()))
# What a person can do to a field: leave it, empty it, or type something.
TYPED = {
    "holder_identity": st.none() | st.just("") | WORDS,
    "duration_seconds": st.none() | st.just("") | st.integers(1, MAX_INT32).map(str),
    "transitions": st.none() | st.just("") | st.integers(0, MAX_INT32).map(str),
    "acquire_time": st.none() | st.sampled_from(["", "now", "2026-11-20T12:00:01.000002Z"]),
    "renew_time": st.none() | st.sampled_from(["", "now", "2026-11-20T12:00:01.000002Z"]),
    "strategy": st.none() | st.sampled_from(["", "OldestEmulationVersion", "a.example/x"]),
    "preferred_holder": st.none() | st.just("") | WORDS,
}
# For each key: None removes it, a text sets it.
PAIRS_TYPED = st.dictionaries(WORDS, st.none() | st.text(max_size=12), max_size=4)


@st.composite
def leases(draw: st.DrawFn) -> dict[str, Any]:
    """A Lease as the API sends it, with fields that Leaseboard does not know."""
    spec = {
        "holderIdentity": draw(st.none() | HOLDERS),
        "leaseDurationSeconds": draw(NUMBERS),
        "leaseTransitions": draw(NUMBERS),
        "acquireTime": draw(TIMES),
        "renewTime": draw(TIMES),
        "strategy": draw(st.none() | st.just("OldestEmulationVersion")),
        "preferredHolder": draw(st.none() | WORDS),
    }
    metadata = {
        "name": "a",
        "namespace": "b",
        "uid": "u",
        "resourceVersion": "7",
        "finalizers": draw(st.lists(WORDS, max_size=3)),
        "managedFields": [{"manager": draw(WORDS), "fieldsV1": {"f:spec": {}}}],
        "labels": draw(PAIR),
        "annotations": draw(PAIR),
    }
    known = {name: value for name, value in spec.items() if value is not None}
    return {"metadata": metadata, "spec": draw(OTHERS) | known, "x-unknown": draw(st.text())}


@given(
    shown=leases(),
    now=leases(),
    typed=st.fixed_dictionaries(TYPED),
    labels=PAIRS_TYPED,
    annotations=PAIRS_TYPED,
)
def test_the_request_changes_exactly_what_was_touched(shown, now, typed, labels, annotations):
    """`shown`: the Lease that the form was drawn for; `now`: the Lease that is written to."""
    form = sent(shown, typed, {"labels": labels, "annotations": annotations})
    assert form.is_valid(), form.errors
    after = merged(now, form.wanted().patch(as_lease(now), now=NOW))

    expected = copy.deepcopy(now)
    before = as_browsers_send(as_typed(as_lease(shown)))
    for name, value in typed.items():
        if value is not None and value.strip() != before[name].strip():
            put(expected["spec"], API_NAMES[name], value)
    for part, changes in (("labels", labels), ("annotations", annotations)):
        there = pairs_of(before, part)
        for key, value in changes.items():
            if value is None and key in there:
                expected["metadata"][part].pop(key, None)
            elif value is not None and there.get(key) != typed_as(part, value):
                expected["metadata"][part][key] = typed_as(part, value)
    assert after == expected
    assert list(after["metadata"]["finalizers"]) == now["metadata"]["finalizers"]


@given(shown=leases())
def test_a_form_that_nobody_touched_sends_nothing(shown):
    form = sent(shown, {}, {})
    assert form.is_valid(), form.errors
    assert form.wanted().patch(as_lease(shown), now=NOW) == {}
    assert not form.changed_from()


@given(shown=leases(), now=leases(), typed=st.fixed_dictionaries(TYPED), labels=PAIRS_TYPED)
def test_a_rebased_form_keeps_what_was_typed_and_follows_the_cluster_elsewhere(
    shown, now, typed, labels
):
    form = sent(shown, typed, {"labels": labels})
    assert form.is_valid(), form.errors
    current = as_lease(now)
    rebased = EditForm(as_browsers_send(form.rebased({}, current)))
    rebased.current = current
    assert rebased.is_valid(), rebased.errors
    assert rebased.data["reason"] == "drill"
    seen = rebased.was_shown
    assert seen is not None
    assert seen.term == term_of(current)
    for name in TYPED:
        if form.touched(name):
            assert rebased.data[name] == form.data[name]
        else:
            assert not rebased.touched(name)
    wanted, before = rebased.wanted(), form.wanted()
    still = {api for name, api in API_NAMES.items() if rebased.touched(name)}
    assert dict(wanted.spec) == {api: before.spec[api] for api in still}
    assert {k: v for k, v in wanted.labels.items() if v} == {
        k: v for k, v in before.labels.items() if v and not same("labels", now_labels(now, k), v)
    }


def test_the_side_of_the_cluster_can_be_chosen():
    shown = {
        "metadata": {"name": "a", "labels": {"team": "a"}},
        "spec": {"leaseDurationSeconds": 15},
    }
    now = {"metadata": {"name": "a", "labels": {"team": "c"}}, "spec": {"leaseDurationSeconds": 20}}
    form = sent(shown, {"duration_seconds": "30"}, {"labels": {"team": "b"}})
    assert form.is_valid()
    found = form.collisions({}, as_lease(now))
    assert [(one.field, one.yours, one.theirs) for one in found] == [
        ("leaseDurationSeconds", "30", "20"), ("labels/team", "b", "c"),
    ]  # fmt: skip
    data = form.rebased({}, as_lease(now))
    for one in found:
        data[f"keep-{one.name}"] = "theirs"
    chosen = EditForm(data)
    chosen.current = as_lease(now)
    assert chosen.is_valid()
    assert chosen.wanted().patch(as_lease(now), now=NOW) == {}


def test_a_renewal_collides_with_nothing_and_the_same_value_neither():
    shown = {"metadata": {}, "spec": {"renewTime": "2026-11-20T12:00:00.000000Z"}}
    now = {"metadata": {}, "spec": {"renewTime": "2026-11-20T12:00:09.000000Z"}}
    form = sent(shown, {"renew_time": "now", "duration_seconds": "30"}, {})
    assert form.is_valid()
    assert form.collisions({}, as_lease(now)) == ()
    same = now | {"spec": now["spec"] | {"leaseDurationSeconds": 30}}
    assert form.collisions({}, as_lease(same)) == ()


def test_too_many_labels_are_left_to_the_yaml_editor():
    many = {f"k{n}": "v" for n in range(200)}
    shown = {"metadata": {"labels": many}, "spec": {}}
    form = EditForm(initial={"seen": sent(shown, {}, {}).data["seen"]})
    assert form.too_many == ("labels",)
    data = as_browsers_send(as_typed(as_lease(shown)))
    data.setlist("labels-key", [])
    data.setlist("labels-value", [])
    bound = EditForm(data)
    bound.current = as_lease(shown)
    assert bound.is_valid()
    assert bound.wanted().labels == {}


def sent(
    shown: dict[str, Any], typed: dict[str, str | None], pairs: dict[str, dict[str, str | None]]
) -> EditForm:
    """The form as a browser sends it."""
    data = as_browsers_send(as_typed(as_lease(shown)))
    data["reason"] = "drill"
    for name, value in typed.items():
        if value is not None:
            data[name] = value
    for part, changes in pairs.items():
        there = pairs_of(data, part)
        for key, value in changes.items():
            if value is None:
                there.pop(key, None)
            else:
                there[key] = typed_as(part, value)
        data.setlist(f"{part}-key", list(there))
        data.setlist(f"{part}-value", list(there.values()))
    form = EditForm(data)
    form.current = as_lease(shown)
    return form


def as_browsers_send(data: QueryDict) -> QueryDict:
    """An <input> has no line breaks, a <textarea> has CR LF, and HTML has no NUL."""
    result = QueryDict(mutable=True)
    for name, values in data.lists():
        lines = name == "annotations-value"
        result.setlist(name, [as_sent(value, lines=lines) for value in values])
    return result


def as_sent(text: str, *, lines: bool = True) -> str:
    text = text.replace("\0", "\ufffd")
    if lines:
        return text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\r", "").replace("\n", "")


def typed_as(part: str, value: str) -> str:
    return as_sent(value, lines=part == "annotations")


def pairs_of(data: QueryDict, part: str) -> dict[str, str]:
    values = data.getlist(f"{part}-value")
    return dict(zip(data.getlist(f"{part}-key"), values, strict=True))


def same(part: str, shown: str | None, typed: str) -> bool:
    """A label is one line: blanks around it are no change."""
    if part == "labels" and shown is not None:
        return as_sent(shown, lines=False).strip() == as_sent(typed, lines=False).strip()
    return shown == typed


def now_labels(now: dict[str, Any], key: str) -> str | None:
    return now["metadata"]["labels"].get(key)


def put(spec: dict[str, Any], api: str, value: str) -> None:
    if value == "" and api != "holderIdentity":
        spec.pop(api, None)
    elif api in ("leaseDurationSeconds", "leaseTransitions"):
        spec[api] = int(value)
    else:
        spec[api] = format_microtime(NOW) if value == "now" else value.strip()


def as_lease(raw: dict[str, Any]) -> Lease:
    return msgspec.convert(raw, Lease, strict=False)
