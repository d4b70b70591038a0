"""The watch over open rights: few queries, however many are open, and what it does when the
database does not answer."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard import clock
from dashboard.access.rights import rights_watch
from dashboard.access.rights.rights import (
    BATCH,
    DEACTIVATED,
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
from dashboard.access.rights.rights_watch import PROBLEM, RightsWatch
from dashboard.access.wall import links
from tests.support.board import member

MANY = 1000
RIGHT = WallRight(1, "a")


def find_ended(rights, *, now):
    """As the first look of a process."""
    return RightsReader().find_ended(rights, now=now)


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
    rights: list[Right] = [UserRight(one.user_id, key) for key in keys]
    rights += [WallRight(link.pk, "a")] * MANY
    rights += [WallRight(link.pk, str(number)) for number in range(MANY)]
    with CaptureQueriesContext(
        connection,
    ) as asked:
        ended = find_ended(rights, now=clock.now())
    assert len(ended) == MANY, "the clusters that the link does not open"
    assert len(asked) <= 3 * -(-len(rights) // BATCH)
    Session.objects.filter(pk=keys[7]).delete()
    assert find_ended([rights[7], rights[8]], now=clock.now()) == {rights[7]: SIGNED_OUT}


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
def test_what_stood_at_the_last_look_is_not_believed_for_ever(board, change, reason):
    right, reader = with_session("olga"), RightsReader()
    for _ in range(2):
        assert reader.find_ended([right], now=clock.now()) == {}
    change()
    for _ in range(2):
        assert reader.find_ended([right], now=clock.now()) == {right: reason}


def watch_of(answers: list[dict[Right, str] | Exception]) -> RightsWatch:
    """A watch whose database gives these answers, one after the other."""

    def find(rights: object, **_now: object) -> dict[Right, str]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return RightsWatch(find)


async def test_what_is_open_stays_open_while_the_database_does_not_answer(caplog):
    ended: list[str] = []
    refused = OperationalError("no route to host")
    watch = watch_of([refused, refused, {}, {RIGHT: "over"}])
    watch.add(RIGHT, ended.append)
    await watch.check()
    assert (ended, watch.problem) == ([], PROBLEM)
    await watch.check()
    said = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == 1, "an outage is one line of the log"
    await watch.check()
    assert watch.problem is None
    await watch.check()
    assert ended == ["over"]


async def test_a_database_that_hangs_is_told_too(monkeypatch):
    watch = watch_of([{}])
    watch.add(RIGHT, str)
    await watch.check()
    assert watch.problem is None
    later = time.monotonic() + rights_watch.LATE_SECONDS + 1
    monkeypatch.setattr(rights_watch.time, "monotonic", lambda: later)
    assert watch.problem == PROBLEM


async def test_the_problem_is_on_every_page(board):
    board.rights = watch_of([OperationalError("no")])
    board.rights.add(RIGHT, str)
    await board.rights.check()
    assert PROBLEM in board.problem("a")


async def test_nothing_open_asks_nothing():
    await watch_of([]).check()


async def test_each_grant_ends_once_and_one_that_fails_holds_up_no_other(caplog):
    ended: list[str] = []

    def broken(reason: str) -> None:
        raise ValueError(reason)

    watch = watch_of([{RIGHT: "over"}])
    watch.add(RIGHT, ended.append)
    watch.add(RIGHT, broken)
    kept = watch.add(WallRight(2, "a"), ended.append)
    gone = watch.add(RIGHT, ended.append)
    watch.remove(gone)
    await watch.check()
    assert ended == ["over"]
    assert "could not be closed" in caplog.text
    assert list(watch.rights) == [kept.right]
    watch.remove(kept)
    watch.remove(kept)
    assert not watch.rights


async def test_a_flood_of_changes_asks_no_more_than_a_few_times(monkeypatch):
    monkeypatch.setattr(rights_watch, "MIN_SPACING", 3600.0)
    watch = watch_of([{}])
    watch.add(RIGHT, str)
    running = asyncio.create_task(watch.run())
    await asyncio.sleep(0)
    for _ in range(100):
        await sync_to_async(watch.look_now)()
    while not watch.checks:
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert watch.checks == 1


@pytest.mark.django_db
def test_a_user_without_a_session_is_looked_at_by_name(board):
    right = UserRight(member("olga", "operator").pk, None)
    assert find_ended([right], now=clock.now()) == {}
    User.objects.update(is_active=False)
    assert find_ended([right], now=clock.now()) == {right: DEACTIVATED}


async def test_a_database_that_is_down_is_logged_once_and_so_is_its_return(caplog):
    caplog.set_level("INFO")
    down = [True]

    def find(*_rights: object, now: object) -> dict[Right, str]:
        if down[0]:
            raise OperationalError("no route")
        return {}

    watch = RightsWatch(find)
    watch.add(RIGHT, str)
    for _ in range(3):
        await watch.check()
    assert caplog.text.count(PROBLEM) == 1
    assert "no route" in caplog.text
    down[0] = False
    for _ in range(3):
        await watch.check()
    assert caplog.text.count("The database says again who may look.") == 1
    assert watch.problem is None
    watch.close()


@pytest.mark.django_db
def test_a_socket_has_the_right_of_its_key_or_of_its_user(board):
    link, key = links.create(name="w", clusters=["a"], created_by="x", now=clock.now())

    def right(query: str, cluster: str = "a", user: object = None) -> Right:
        scope = {"query_string": query.encode(), "user": user or AnonymousUser()}
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
def test_of_two_people_the_one_who_may_not_read_any_more_is_found(board):
    reads, left = member("olga", "operator"), member("gil", None)
    rights = [UserRight(user.pk, None) for user in (reads, left)]
    assert find_ended(rights, now=clock.now()) == {rights[1]: MAY_NOT_READ}
