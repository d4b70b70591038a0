"""Merge patches: apply one, make one, and see what a server left out of one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from leases.domain.edit import (
    FieldWriter,
    Kept,
    leaves,
    merged,
    not_taken,
    patch_between,
    writer_of,
)

VALUES = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=2), VALUES, max_size=4)


@given(before=OBJECTS, after=OBJECTS)
def test_a_patch_between_two_objects_turns_one_into_the_other(before, after):
    assert merged(before, patch_between(before, after)) == after


@given(item=OBJECTS)
def test_equal_objects_need_no_patch(item):
    assert patch_between(item, item) == {}


def test_true_is_not_one():
    assert patch_between({"a": 1}, {"a": True}) == {"a": True}


def test_a_patch_names_single_fields_and_whole_lists():
    before = {"metadata": {"finalizers": ["a", "b"], "labels": {"x": "1"}}, "spec": {"d": 15}}
    after = {"metadata": {"finalizers": ["b", "a"], "labels": {"x": "1"}}, "spec": {"d": 30}}
    patch = patch_between(before, after)
    assert patch == {"metadata": {"finalizers": ["b", "a"]}, "spec": {"d": 30}}
    assert dict(leaves(patch)) == {("metadata", "finalizers"): ["b", "a"], ("spec", "d"): 30}


def test_fields_that_the_server_dropped_or_changed_are_named():
    patch = {
        "metadata": {"resourceVersion": "7", "labels": {"gone": None}},
        "spec": {"strategy": "OldestEmulationVersion", "leaseDurationSeconds": 30, "x": None},
    }
    after = {"metadata": {"resourceVersion": "8"}, "spec": {"leaseDurationSeconds": 20}}
    assert not_taken(patch, after) == (
        Kept("spec.strategy", "OldestEmulationVersion", None),
        Kept("spec.leaseDurationSeconds", 30, 20),
    )
    assert not_taken({"spec": {"holderIdentity": ""}}, {"spec": {"holderIdentity": ""}}) == ()


def test_the_last_writer_of_a_field_is_found():
    def entry(manager: str, time: str | None, *fields: str) -> dict[str, Any]:
        owned = {"f:spec": {f"f:{name}": {} for name in fields}}
        return {"manager": manager, "time": time, "fieldsV1": owned}

    lease = {
        "metadata": {
            "managedFields": [
                entry("kubectl-edit", "2026-11-20T12:04:18Z", "leaseDurationSeconds"),
                entry("old", "2026-11-20T11:00:00Z", "leaseDurationSeconds", "holderIdentity"),
                entry("timeless", None, "strategy"),
                "nonsense",
            ]
        }
    }
    duration = writer_of(lease, ("spec", "leaseDurationSeconds"))
    assert duration == FieldWriter("kubectl-edit", "2026-11-20T12:04:18Z")
    assert writer_of(lease, ("spec", "holderIdentity")) == FieldWriter(
        "old", "2026-11-20T11:00:00Z"
    )
    assert writer_of(lease, ("spec", "strategy")) == FieldWriter("timeless", "")
    assert writer_of(lease, ("spec", "renewTime")) is None
    assert writer_of({}, ("spec", "renewTime")) is None
