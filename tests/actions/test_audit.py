"""What the audit trail answers to pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User

from leases.actions import audit
from leases.domain.change import ChangeType
from leases.domain.incident import Cause
from leases.domain.lease import ObjectName
from leases.history.audit_trail import writes_behind, writes_of
from leases.models import Edit
from tests.support.values.changes import T0, a_change
from tests.support.values.incident_rows import incident_with

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def moment(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.mark.django_db
def test_the_writes_of_a_stretch_are_those_that_were_done_in_it(monkeypatch):
    user = User.objects.create(username="ada")

    def write(seconds: float, *, cluster="a", name="one", outcome=audit.DONE) -> None:
        Edit.objects.create(
            at=moment(seconds), user=user, cluster=cluster, namespace="ns", name=name,
            outcome=outcome,
        )  # fmt: skip

    for seconds in (-1, 0, 5, 10):
        write(seconds)
    write(3, name="two")
    write(4, cluster="b")
    for outcome in (audit.REFUSED, audit.FAILED, Edit.INTENDED):
        write(4, outcome=outcome)
    one, two = ObjectName("ns", "one"), ObjectName("ns", "two")
    found = audit.done_between("a", moment(0), moment(10))
    assert found == {one: [moment(5), moment(0)], two: [moment(3)]}
    monkeypatch.setattr(audit, "_MAX_DETAIL", 2)
    assert audit.done_between("a", moment(0), moment(10)) == {one: [moment(5)], two: [moment(3)]}


@pytest.mark.django_db
def test_of_a_change_that_was_found_later_a_write_is_only_what_it_wrote():
    """Its resourceVersion is that of the last write, which may be another one."""
    user = User.objects.create(username="ada")
    moved = [{"field": "spec.holderIdentity", "from": "cp-1", "to": "cp-2"}]
    longer = [{"field": "spec.leaseDurationSeconds", "from": 15, "to": 44}]
    actions = {
        "1": ("lease.edit", longer),
        "2": ("lease.handover", moved),
        "3": ("lease.create", []),
    }
    for version, (action, fields) in actions.items():
        Edit.objects.create(
            at=NOON, user=user, cluster="a", namespace="kube-system", name="scheduler",
            action=action, changes=fields, resource_version=version, outcome=audit.DONE,
        )  # fmt: skip

    def by_form(version: str, word: ChangeType, *, inferred: bool = True) -> bool:
        row = {"resource_version": version, "change": word, "holder": "cp-2"}
        row["fields"] = ("leaseDurationSeconds",) if word is ChangeType.RECONFIGURED else ()
        change = a_change(0, name="scheduler", inferred=inferred, cluster="a", **row)
        return bool(writes_of([change]))

    assert not by_form("1", ChangeType.CREATED)
    assert not by_form("1", ChangeType.TAKEN_OVER)
    assert by_form("1", ChangeType.RECONFIGURED)
    assert not by_form("2", ChangeType.RECONFIGURED)
    assert by_form("1", ChangeType.RECONFIGURED, inferred=False)
    assert by_form("2", ChangeType.TAKEN_OVER)
    assert not by_form("2", ChangeType.CREATED)
    assert by_form("3", ChangeType.CREATED)


@pytest.mark.django_db
def test_the_write_behind_an_incident_is_the_last_one_before_it_began():
    user = User.objects.create(username="ada")
    for seconds, action in ((-4.0, "lease.edit"), (-0.2, "lease.delete"), (2.0, "lease.create")):
        Edit.objects.create(
            at=T0 + timedelta(seconds=seconds), user=user, cluster="a", namespace="kube-system",
            name="scheduler", action=action, outcome=audit.DONE,
        )  # fmt: skip
    by_form = {"cause": Cause.BY_HAND, "writer": "leaseboard"}
    change = a_change(0, namespace="kube-system", name="scheduler", cluster="a")
    deleted = incident_with(change, **by_form)
    edited = incident_with(change, id="two", began=T0 - timedelta(seconds=3.9), **by_form)
    found = writes_behind([deleted, edited])
    assert {number: row.action for number, row in found.items()} == {
        "one": "lease.delete",
        "two": "lease.edit",
    }
