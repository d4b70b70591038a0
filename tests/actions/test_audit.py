"""What the audit trail answers to pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User

from leases.actions import audit
from leases.domain.lease import ObjectName
from leases.models import Edit

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
