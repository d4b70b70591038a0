"""The audit trail names the fields of a request with their old and new values."""

from __future__ import annotations

import pytest

from leases.actions.audit import FieldChange, changed_fields, leaves

BEFORE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {
        "name": "x",
        "resourceVersion": "7",
        "labels": {"app": "a", "b.io/team": "blue"},
        "managedFields": [{}],
    },
    "spec": {"holderIdentity": "a", "renewTime": "2026-11-20T12:00:00.500000Z", "odd": {"n": 1}},
}


def changes(body, *, whole=False):
    return [(one.field, one.before, one.after) for one in changed_fields(BEFORE, body, whole=whole)]


def test_leaves_have_the_names_that_a_person_knows_and_skip_what_the_server_sets():
    assert leaves(BEFORE) == {
        "metadata.labels[app]": "a",
        "metadata.labels[b.io/team]": "blue",
        "spec.holderIdentity": "a",
        "spec.renewTime": "2026-11-20T12:00:00.500000Z",
        "spec.odd.n": 1,
    }


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"metadata": {"resourceVersion": "7"}}, []),
        ({"spec": {"holderIdentity": "a"}}, []),
        ({"spec": {"holderIdentity": ""}}, [("spec.holderIdentity", "a", "")]),
        ({"spec": {"holderIdentity": None}}, [("spec.holderIdentity", "a", None)]),
        ({"spec": {"strategy": "x"}}, [("spec.strategy", None, "x")]),
        ({"spec": {"renewTime": "2026-11-20T12:00:00.5Z"}}, []),
        (
            {"metadata": {"labels": {"app": None, "new": "1"}}},
            [("metadata.labels[app]", "a", None), ("metadata.labels[new]", None, "1")],
        ),
        (
            {"metadata": {"labels": None}},
            [("metadata.labels[app]", "a", None), ("metadata.labels[b.io/team]", "blue", None)],
        ),
        ({"spec": {"odd": {"n": 2}}}, [("spec.odd.n", 1, 2)]),
    ],
)
def test_a_merge_patch_changes_what_it_names(body, found):
    assert changes(body) == found


def test_an_update_removes_what_it_leaves_out():
    body = {"metadata": {"labels": {"app": "a"}}, "spec": {"holderIdentity": "b"}}
    assert changes(body, whole=True) == [
        ("spec.holderIdentity", "a", "b"),
        ("metadata.labels[b.io/team]", "blue", None),
        ("spec.renewTime", "2026-11-20T12:00:00.500000Z", None),
        ("spec.odd.n", 1, None),
    ]


def test_a_create_changes_every_field_from_nothing():
    assert changed_fields({}, {"spec": {"holderIdentity": "b"}}, whole=True) == [
        FieldChange("spec.holderIdentity", None, "b")
    ]
