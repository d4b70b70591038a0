"""By what right a socket or a long answer is open, and whether that right still stands."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import parse_qs

import msgspec
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.contrib.sessions.models import Session
from django.utils.crypto import constant_time_compare

from dashboard.access.roles import VIEW
from dashboard.access.wall_links import PARAMETER, WallLinkClosed, open_link, why_closed
from leases.models import WallLink

BATCH = 500  # rights in one query
BACKEND = "django.contrib.auth.backends.ModelBackend"

# A close frame holds 123 bytes of reason.
NOT_SIGNED_IN = "You are not signed in. Sign in to see live data."
SIGNED_OUT = "You were signed out. Sign in again to see live data."
SESSION_OVER = "Your session has run out. Sign in again to see live data."
PASSWORD_CHANGED = "Your password was changed. Sign in again to see live data."  # noqa: S105
DEACTIVATED = "Your account was deactivated. Ask an admin."
DELETED = "Your account was deleted. Ask an admin."
MAY_NOT_READ = "You may not read Leases. Ask an admin for the role operator."

T = TypeVar("T")


class Refused(Exception):
    """There is no right to open this; the text says why and what to do."""


class UserRight(msgspec.Struct, frozen=True):
    """A signed-in user who may read. Ends with the session or with the user's permission."""

    user_id: int
    session_key: str | None  # None: who opened it has no session, as a test


class WallRight(msgspec.Struct, frozen=True):
    """Whoever has a wall link that opens this cluster."""

    link_id: int
    cluster: str


Right = UserRight | WallRight


def right_of_user(user: AbstractBaseUser | AnonymousUser, session: Any) -> UserRight:
    """The right of the user who sent a request or opens a socket. Raises Refused."""
    if not user.is_authenticated:
        raise Refused(NOT_SIGNED_IN)
    if not user.has_perm(VIEW):  # type: ignore[attr-defined]
        raise Refused(MAY_NOT_READ)
    return UserRight(user.pk, getattr(session, "session_key", None))


def right_of_socket(scope: Mapping[str, Any], cluster: str) -> Right:
    """By what right a socket of this cluster may be opened. Raises Refused."""
    keys = parse_qs(scope["query_string"].decode("latin-1")).get(PARAMETER)
    if not keys:
        return right_of_user(scope["user"], scope.get("session"))
    try:
        return WallRight(open_link(keys[0], cluster=cluster).pk, cluster)
    except WallLinkClosed as error:
        raise Refused(str(error)) from error


def find_ended(rights: Collection[Right], *, now: datetime) -> dict[Right, str]:
    """Those of the rights that do not stand any more, each with the reason in a sentence.

    Asks the database for hundreds of rights in one query of each sort.
    """
    ended: dict[Right, str] = {}
    for users in _batches([one for one in rights if isinstance(one, UserRight)]):
        ended |= _ended_of_users(users, now)
    for walls in _batches([one for one in rights if isinstance(one, WallRight)]):
        ended |= _ended_of_walls(walls, now)
    return ended


def _batches(rights: list[T]) -> Iterator[list[T]]:
    left = iter(rights)
    while batch := list(islice(left, BATCH)):
        yield batch


def _ended_of_walls(rights: list[WallRight], now: datetime) -> dict[Right, str]:
    links = WallLink.objects.in_bulk({right.link_id for right in rights})
    reasons = {
        right: why_closed(links.get(right.link_id), cluster=right.cluster, now=now)
        for right in rights
    }
    return {right: reason for right, reason in reasons.items() if reason is not None}


def _ended_of_users(rights: list[UserRight], now: datetime) -> dict[Right, str]:
    ids = {right.user_id for right in rights}
    readers = User.objects.with_perm(VIEW, backend=BACKEND).filter(pk__in=ids).in_bulk()
    others = User.objects.in_bulk(ids - readers.keys()) if len(readers) < len(ids) else {}
    keys = {right.session_key for right in rights if right.session_key is not None}
    sessions = Session.objects.in_bulk(keys)
    ended: dict[Right, str] = {}
    for right in rights:
        reader = readers.get(right.user_id)
        if reader is None:
            ended[right] = _why_no_reader(others.get(right.user_id))
        elif right.session_key is not None:
            reason = _why_no_session(sessions.get(right.session_key), reader, now)
            if reason is not None:
                ended[right] = reason
    return ended


def _why_no_reader(user: User | None) -> str:
    if user is None:
        return DELETED
    return MAY_NOT_READ if user.is_active else DEACTIVATED


def _why_no_session(session: Session | None, user: User, now: datetime) -> str | None:
    if session is None:
        return SIGNED_OUT
    if session.expire_date <= now:
        return SESSION_OVER
    said = session.get_decoded()
    if said.get(SESSION_KEY) != str(user.pk):
        return SIGNED_OUT
    if not constant_time_compare(said.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()):
        return PASSWORD_CHANGED
    return None
