"""An admin says that a Lease may be vacant, with a row in the audit trail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User

from leases.actions.overrides import ACTION, mark_may_be_vacant
from leases.domain.lease import ObjectName
from leases.models import Edit, VacancyMark

pytestmark = pytest.mark.django_db

KEY = ObjectName("default", "story")
NOW = datetime(2026, 11, 20, 12, 0, 0, 5, tzinfo=UTC)


@pytest.fixture
def ada() -> User:
    return User.objects.create(username="ada")


def mark(user: User, *, may: bool, seconds: float) -> None:
    at = NOW + timedelta(seconds=seconds)
    mark_may_be_vacant(user=user, cluster="a", key=KEY, may_be_vacant=may, at=at)


def stored() -> list[tuple[object, ...]]:
    names = ("cluster", "namespace", "name", "username", "at", "ended_at")
    return list(VacancyMark.objects.order_by("at").values_list(*names))


def test_a_mark_is_stored_with_a_closed_audit_row(ada):
    mark(ada, may=True, seconds=0)
    assert stored() == [("a", "default", "story", "ada", NOW, None)]
    row = Edit.objects.get()
    assert (row.cluster, row.namespace, row.name) == ("a", "default", "story")
    assert (row.at, row.closed_at, row.outcome) == (NOW, NOW, "done")
    assert (row.user, row.username, row.action) == (ada, "ada", ACTION)
    assert (row.before, row.after) == ({"may_be_vacant": False}, {"may_be_vacant": True})
    assert row.detail == "may be vacant"


def test_a_mark_that_is_taken_back_stays_as_the_past_and_can_be_set_again(ada):
    for seconds, may in enumerate((True, False, True)):
        mark(ada, may=may, seconds=seconds)
    times = [row[4:] for row in stored()]
    later = [NOW + timedelta(seconds=seconds) for seconds in range(3)]
    assert times == [(later[0], later[1]), (later[2], None)]
    assert [edit.after["may_be_vacant"] for edit in Edit.objects.order_by("at")] == [
        True, False, True,
    ]  # fmt: skip
    assert Edit.objects.order_by("at")[1].detail == "must have a holder again"


@pytest.mark.parametrize("may", [True, False])
def test_a_word_that_is_said_already_changes_nothing(ada, may):
    if may:
        mark(ada, may=True, seconds=0)
    before = stored(), Edit.objects.count()
    mark(ada, may=may, seconds=1)
    assert (stored(), Edit.objects.count()) == before
