"""What the database says of open rights: few queries, however many are open."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard import clock
from dashboard.access import links, rights
from dashboard.access.rights import (
    BATCH,
    DEACTIVATED,
    DELETED,
    MAY_NOT_READ,
    NOT_SIGNED_IN,
    PASSWORD_CHANGED,
    SESSION_OVER,
    SIGNED_OUT,
    AccessRefused,
    Right,
    RightsReader,
    UserRight,
    WallRight,
    right_of_socket,
)
from tests.support.board import member

MANY = 1000


def find_ended(looked_at, *, now):
    """As the first look of a process."""
    return RightsReader().find_ended(looked_at, now=now)


def with_session(name: str, role: str | None = "operator") -> UserRight:
    user = member(name, role)
    browser = Client()
    browser.force_login(user)
    return UserRight(user.pk, browser.session.session_key)


@pytest.mark.django_db
def test_a_thousand_rights_are_looked_at_in_a_few_queries(board):
    one = with_session("olga")
    data = Session.objects.get(pk=one.session_key).session_data
    until = clock.now() + timedelta(days=1)
    keys = [f"{number:032}" for number in range(MANY)]
    Session.objects.bulk_create([Session(key, data, until) for key in keys])
    link, _ = links.create(name="w", clusters=["a"], created_by="x", now=clock.now())
    many: list[Right] = [UserRight(one.user_id, key) for key in keys]
    many += [WallRight(link.pk, "a")] * MANY
    many += [WallRight(link.pk, str(number)) for number in range(MANY)]
    with CaptureQueriesContext(
        connection,
    ) as asked:
        ended = find_ended(many, now=clock.now())
    assert len(ended) == MANY, "the clusters that the link does not open"
    assert len(asked) <= 3 * -(-len(many) // BATCH)
    Session.objects.filter(pk=keys[7]).delete()
    assert find_ended([many[7], many[8]], now=clock.now()) == {many[7]: SIGNED_OUT}


@pytest.mark.django_db
def test_a_session_of_somebody_else_is_no_right(board):
    olga, gil = with_session("olga"), with_session("gil")
    mixed = UserRight(olga.user_id, gil.session_key)
    assert find_ended([mixed, olga, gil], now=clock.now()) == {mixed: SIGNED_OUT}
    empty = SessionStore()
    empty.create()
    nobody = UserRight(olga.user_id, empty.session_key)
    assert find_ended([nobody], now=clock.now()) == {nobody: SIGNED_OUT}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda: User.objects.update(password="other"), PASSWORD_CHANGED),
        (lambda: Session.objects.update(session_data="other"), SIGNED_OUT),
        (lambda: Session.objects.update(expire_date=clock.now()), SESSION_OVER),
        (lambda: Session.objects.all().delete(), SIGNED_OUT),
        (lambda: User.objects.update(is_active=False), DEACTIVATED),
    ],
)
def test_a_right_that_stood_at_the_last_check_is_checked_again(board, change, reason):
    right, reader = with_session("olga"), RightsReader()
    for _ in range(2):
        assert reader.find_ended([right], now=clock.now()) == {}
    change()
    for _ in range(2):
        assert reader.find_ended([right], now=clock.now()) == {right: reason}


@pytest.mark.django_db
def test_a_user_without_a_session_is_looked_at_by_name(board):
    right = UserRight(member("olga", "operator").pk, None)
    assert find_ended([right], now=clock.now()) == {}
    User.objects.update(is_active=False)
    assert find_ended([right], now=clock.now()) == {right: DEACTIVATED}


@pytest.mark.django_db
def test_a_socket_has_the_right_of_its_key_or_of_its_user(board):
    link, key = links.create(name="w", clusters=["a"], created_by="x", now=clock.now())

    def right(query: str, cluster: str = "a", user: object = None) -> Right:
        scope = {
            "query_string": query.encode(), "headers": [], "user": user or AnonymousUser(),
        }  # fmt: skip
        return right_of_socket(scope, cluster)

    assert right(f"key={key}") == WallRight(link.pk, "a")
    with pytest.raises(AccessRefused, match=NOT_SIGNED_IN):
        right("")
    with pytest.raises(AccessRefused, match="Ask an admin"):
        right(f"key={key}", "b")
    with pytest.raises(AccessRefused, match=MAY_NOT_READ):
        right("", user=member("gil", None))
    olga = member("olga", "operator")
    assert right("", user=olga) == UserRight(olga.pk, None)


@pytest.mark.django_db
def test_of_two_people_only_the_one_without_a_role_may_not_read(board):
    reads, left = member("olga", "operator"), member("gil", None)
    both = [UserRight(user.pk, None) for user in (reads, left)]
    assert find_ended(both, now=clock.now()) == {both[1]: MAY_NOT_READ}


def reader_by(permission: str, name: str) -> UserRight:
    """A user with this permission of the user's own, who is in no group."""
    user = member(name, None)
    user.user_permissions.add(Permission.objects.get(codename=permission))
    return UserRight(user.pk, None)


@pytest.mark.django_db
def test_a_right_stands_by_a_group_or_by_a_permission_of_ones_own(board):
    for number in range(3):
        member(f"idle-{number}", "operator")  # so that numbers of users and of their rows differ
    by_group = UserRight(member("olga", "operator").pk, None)
    by_permission = reader_by("view_change", "per")
    root = UserRight(User.objects.create_superuser("root").pk, None)
    other_permission = reader_by("edit_lease", "eve")
    other_group = UserRight(member("gus", None).pk, None)
    empty = Group.objects.create(name="empty")
    User.objects.get(pk=other_group.user_id).groups.add(empty)
    stand = [by_group, by_permission, root]
    end = [other_permission, other_group]
    found = find_ended([*stand, *end], now=clock.now())
    assert found == dict.fromkeys(end, MAY_NOT_READ)


@pytest.mark.django_db
def test_permissions_of_accounts_that_nothing_is_open_for_are_not_fetched(board):
    one = UserRight(member("olga", "operator").pk, None)
    for number in range(5):
        member(f"idle-{number}", "operator")
        reader_by("view_change", f"own-{number}")
    with CaptureQueriesContext(connection) as asked:
        assert find_ended([one], now=clock.now()) == {}
    of_users = [query["sql"] for query in asked if "auth_user" in query["sql"]]
    assert len(of_users) == 3
    for sql in of_users:
        assert f"IN ({one.user_id})" in sql


@pytest.mark.django_db
def test_rights_of_every_batch_are_looked_at(board, monkeypatch):
    monkeypatch.setattr(rights, "BATCH", 2)
    users = [UserRight(member(f"user-{n}", "operator").pk, None) for n in range(5)]
    stays = users[2]
    User.objects.exclude(pk=stays.user_id).delete()
    walls: list[Right] = [WallRight(number, "a") for number in range(1, 4)]
    with CaptureQueriesContext(connection) as asked:
        ended = find_ended([*users, *walls], now=clock.now())
    assert set(ended) == {*users, *walls} - {stays}
    assert {ended[one] for one in users if one != stays} == {DELETED}
    assert sum("leases_walllink" in query["sql"] for query in asked) == 2


@pytest.mark.django_db
def test_a_wall_right_ends_with_its_link(board):
    now = clock.now()
    link, _ = links.create(
        name="w", clusters=["a"], created_by="x", now=now, expires_at=now + timedelta(days=1)
    )
    right = WallRight(link.pk, "a")
    assert find_ended([right], now=now) == {}
    (reason,) = find_ended([right], now=now + timedelta(days=1)).values()
    assert reason.startswith("This wall link ended")


@pytest.mark.django_db
def test_a_session_ends_at_its_last_instant(board):
    right = with_session("olga")
    until = Session.objects.get(pk=right.session_key).expire_date
    assert find_ended([right], now=until - timedelta(microseconds=1)) == {}
    assert find_ended([right], now=until) == {right: SESSION_OVER}


@pytest.mark.django_db
def test_a_session_is_decoded_once_while_something_is_open_by_it(board, monkeypatch):
    decoded: list[str] = []
    decode = SessionStore.decode

    def counted(store: SessionStore, data: str) -> dict[str, object]:
        decoded.append(data)
        found: dict[str, object] = decode(store, data)
        return found

    monkeypatch.setattr(SessionStore, "decode", counted)
    reader, (olga, gil) = RightsReader(), (with_session("olga"), with_session("gil"))
    decoded.clear()
    for _ in range(3):
        assert reader.find_ended([olga, gil], now=clock.now()) == {}
    assert len(decoded) == 2
    reader.find_ended([gil], now=clock.now())
    reader.find_ended([olga, gil], now=clock.now())
    assert len(decoded) == 3, "olga's was forgotten while nothing was open by it"


@pytest.mark.django_db
def test_the_right_of_a_socket_ends_with_the_session_that_opened_it(board):
    olga = member("olga", "operator")
    session = SimpleNamespace(session_key="its key")
    scope = {"query_string": b"", "headers": [], "user": olga, "session": session}
    assert right_of_socket(scope, "a") == UserRight(olga.pk, "its key")
