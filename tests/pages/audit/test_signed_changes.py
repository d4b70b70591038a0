"""A change made through Leaseboard names who made it, in history and on the page of its Lease."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission, User

from leases.domain.change import ChangeType
from leases.models import ChangeRecord, Edit
from tests.support.board import KEY, a_lease, browser_of, fill, member
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change

pytestmark = pytest.mark.django_db

PLACE = {"cluster": "a", "namespace": KEY.namespace, "name": KEY.name}


@pytest.fixture
def ada(board) -> User:
    fill(board.clusters["a"].store, a_lease())
    now = datetime.now(UTC)
    changes = [
        a_change(
            number, **PLACE, at=now - timedelta(minutes=number), resource_version=f"{number}",
            change=change, uid="u-1",
        )
        for number, change in enumerate(
            (ChangeType.REPLACED, ChangeType.DELETED, ChangeType.RELEASED), start=7
        )
    ]  # fmt: skip
    ChangeRecord.objects.bulk_create(map(to_row, changes))
    board.publisher.fill("a", changes)
    return member("ada", "admin")


def write(user: User, **more) -> Edit:
    values = PLACE | {
        "at": datetime.now(UTC), "user": user, "username": "m.ferrari", "outcome": "done",
        "action": "lease.edit", "request": {"verb": "patch", "uid": "u-1"}, "reason": "drill",
    }  # fmt: skip
    return Edit.objects.create(**values | more)


def signatures(browser, path: str, row: Edit) -> int:
    text = browser.get(path).content.decode()
    said = rf'href="/audit/{row.pk}/">by\s+m\.ferrari: <span data-verbatim>{row.reason}</span>\s*<'
    return len(re.findall(said, text))


LEASE = f"/c/a/leases/{KEY}/"
HISTORY = "/c/a/history/"


@pytest.mark.parametrize("path", [LEASE, HISTORY, f"{HISTORY}?view=sentences"])
def test_the_change_with_the_version_that_was_written_names_the_person(ada, path):
    browser = browser_of(ada)
    row = write(ada, resource_version="7")
    assert signatures(browser, path, row) == 1


@pytest.mark.parametrize("path", [LEASE, HISTORY])
def test_a_deletion_is_known_by_the_uid_that_it_required(ada, path):
    browser = browser_of(ada)
    row = write(ada, request={"verb": "delete", "uid": "u-1"})
    assert signatures(browser, path, row) == 1
    Edit.objects.update(request={"verb": "delete", "uid": "u-2"})
    assert signatures(browser, path, row) == 0


@pytest.mark.parametrize(
    "more", [{"outcome": "refused"}, {"cluster": "b"}, {"name": "other"}, {"resource_version": "5"}]
)
def test_no_other_change_is_signed(ada, more):
    row = write(ada, **{"resource_version": "7"} | more)
    assert signatures(browser_of(ada), HISTORY, row) == 0


def test_the_lease_page_has_its_last_writes(ada):
    rows = [write(ada, at=datetime.now(UTC) - timedelta(hours=n)) for n in range(6)]
    other = write(ada, name="other")
    text = browser_of(ada).get(LEASE).content.decode()
    assert "Written through Leaseboard" in text
    assert all(f'href="/audit/{row.pk}/"' in text for row in rows[:5])
    assert not any(f'href="/audit/{row.pk}/"' in text for row in (rows[5], other))
    assert f"/audit/?cluster=a&amp;lease={KEY}" in text


def test_who_may_not_read_the_trail_sees_no_name(ada):
    row = write(ada, resource_version="7")
    reader = User.objects.create_user("rea")
    reader.user_permissions.add(Permission.objects.get(codename="view_change"))
    for path in (LEASE, HISTORY):
        assert signatures(browser_of(reader), path, row) == 0
        assert "m.ferrari" not in browser_of(reader).get(path).content.decode()
