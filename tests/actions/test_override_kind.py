"""What an admin says a Lease is for, with its row in the audit trail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User

from leases.actions.overrides import OVERRULE_KIND, override_kind
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.models import Edit, KindOverride

pytestmark = pytest.mark.django_db

KEY = ObjectName("default", "story")
NOW = datetime(2026, 11, 20, 12, 0, 0, 5, tzinfo=UTC)


@pytest.fixture
def ada() -> User:
    return User.objects.create(username="ada")


def say(user: User, kind: Kind | None, *, seconds: float = 0) -> Edit:
    at = NOW + timedelta(seconds=seconds)
    override_kind(user=user, cluster="a", key=KEY, kind=kind, before=Kind.LOCK, at=at)
    return Edit.objects.get(at=at)


def stored() -> list[tuple[object, ...]]:
    names = ("cluster", "namespace", "name", "kind", "username", "at")
    return list(KindOverride.objects.order_by("name").values_list(*names))


def test_a_kind_is_stored_with_a_closed_audit_row(ada):
    row = say(ada, Kind.ELECTION)
    assert stored() == [("a", "default", "story", "election", "ada", NOW)]
    assert (row.cluster, row.namespace, row.name) == ("a", "default", "story")
    assert (row.at, row.closed_at, row.outcome) == (NOW, NOW, "done")
    assert (row.user, row.username, row.action) == (ada, "ada", OVERRULE_KIND)
    assert (row.before, row.after) == ({"kind": "lock"}, {"kind": "election"})
    assert row.detail == "is election, was lock"


def test_a_second_word_replaces_the_first_and_none_leaves_it_to_the_rules(ada):
    say(ada, Kind.ELECTION)
    say(ada, Kind.HEARTBEAT, seconds=1)
    assert [row[3:] for row in stored()] == [("heartbeat", "ada", NOW + timedelta(seconds=1))]
    KindOverride.objects.create(
        cluster="a", namespace="default", name="other", kind="lock", username="ada", at=NOW
    )
    row = say(ada, None, seconds=2)
    assert [row[2] for row in stored()] == ["other"]
    assert (row.after, row.detail) == ({"kind": None}, "left to the rules again")
