"""By what right a socket or a long answer is open, and whether that right still stands."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import parse_qs

import msgspec
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, Permission, User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.utils.crypto import constant_time_compare

from dashboard.access import screens
from dashboard.access.api_tokens import TokenPerson, TokenRefused, bearer_of, note_use, open_token
from dashboard.access.api_tokens import why_closed as why_closed_token
from dashboard.access.known_rights import ReadOnlyPerson, Right, TokenRight, UserRight, WallRight
from dashboard.access.links import PARAMETER, WallLinkClosed, open_link, right_of, why_closed
from dashboard.access.proxy import BY_PROXY
from dashboard.access.roles import VIEW
from leases.models import ApiToken, WallLink, WallScreen

BATCH = 500  # rights in one query
READ = dict(zip(("content_type__app_label", "codename"), VIEW.split("."), strict=True))

# A close frame holds 123 bytes of reason.
NOT_SIGNED_IN = "You are not signed in. Sign in to see live data."
SIGNED_OUT = "You were signed out. Sign in again to see live data."
SESSION_OVER = "Your session has run out. Sign in again to see live data."
PASSWORD_CHANGED = "Your password was changed. Sign in again to see live data."  # noqa: S105
DEACTIVATED = "Your account was deactivated. Ask an admin."
DELETED = "Your account was deleted. Ask an admin."
MAY_NOT_READ = "You may not read Leases. Ask an admin for the role operator."

T = TypeVar("T")


class AccessRefused(Exception):
    """There is no right to open this; the text says why and what to do."""


def right_of_user(
    user: AbstractBaseUser | AnonymousUser | ReadOnlyPerson, session: Any
) -> UserRight | TokenRight:
    """The right of the user who sent a request or opens a socket. Raises AccessRefused."""
    if isinstance(user, TokenPerson):
        return TokenRight(user.token.pk)
    if not user.is_authenticated:
        raise AccessRefused(NOT_SIGNED_IN)
    if not user.has_perm(VIEW):  # type: ignore[union-attr]
        raise AccessRefused(MAY_NOT_READ)
    if getattr(user, BY_PROXY, False):  # a cookie that came along counts for nothing
        session = None
    return UserRight(user.pk, getattr(session, "session_key", None))


def right_of_socket(scope: Mapping[str, Any], cluster: str) -> Right:
    """By what right a socket of this cluster may be opened. Raises AccessRefused."""
    query = parse_qs(scope["query_string"].decode("latin-1"))
    keys = query.get(PARAMETER)
    token = bearer_of(dict(scope["headers"]).get(b"authorization", b"").decode("latin-1"))
    if token is not None and not getattr(scope["user"], BY_PROXY, False):
        return _right_of_token(token, scope)
    if not keys and screens.PARAMETER not in query:
        return right_of_user(scope["user"], scope.get("session"))
    try:
        if keys:
            return right_of(open_link(keys[-1], cluster=cluster), cluster)
        cookie = scope.get("cookies", {}).get(screens.COOKIE)
        screen = screens.open_screen(cookie, cluster)
        return right_of(screen.link, cluster, screen.pk)
    except WallLinkClosed as error:
        raise AccessRefused(str(error)) from error


def _right_of_token(text: str, scope: Mapping[str, Any]) -> TokenRight:
    try:
        return TokenRight(open_token(text, (scope.get("client") or ("",))[0]).pk)
    except TokenRefused as error:
        raise AccessRefused(str(error)) from error


def still_may(user: AbstractBaseUser | AnonymousUser | TokenPerson, permission: str) -> bool:
    """Whether the user of a request has this permission now, as the database knows it."""
    if isinstance(user, TokenPerson):
        token = ApiToken.objects.select_related("user").filter(pk=user.token.pk).first()
        return token is not None and TokenPerson(token).has_perm(permission)
    account = User.objects.filter(pk=user.pk or 0).first()
    return account is not None and account.has_perm(permission)


class RightsReader:
    """Asks the database which rights have ended: hundreds in one query of each sort.

    Remembers with what session data and password it found a right to stand, so that a session is
    decoded and its signature checked once, not at every look.
    """

    def __init__(self) -> None:
        self._verified: dict[UserRight, tuple[str, str]] = {}

    def find_ended(self, rights: Collection[Right], *, now: datetime) -> dict[Right, str]:
        """Those of the rights that do not stand any more, each with the reason in a sentence."""
        ended: dict[Right, str] = {}
        users = [one for one in rights if isinstance(one, UserRight)]
        asked = set(users)
        self._verified = {one: said for one, said in self._verified.items() if one in asked}
        for batch in _batches(users):
            ended |= self._ended_of_users(batch, now)
        for walls in _batches([one for one in rights if isinstance(one, WallRight)]):
            ended |= _ended_of_walls(walls, now)
        for tokens in _batches([one for one in rights if isinstance(one, TokenRight)]):
            ended |= _ended_of_tokens(tokens, now)
        return ended

    def _ended_of_users(self, rights: list[UserRight], now: datetime) -> dict[Right, str]:
        accounts = _accounts({right.user_id for right in rights})
        keys = {right.session_key for right in rights if right.session_key is not None}
        sessions = {
            key: (until, data)
            for key, until, data in Session.objects.filter(session_key__in=keys).values_list(
                "session_key", "expire_date", "session_data"
            )
        }
        ended: dict[Right, str] = {}
        for right in rights:
            account = accounts.get(right.user_id)
            reason = _why_no_reader(account)
            if reason is None and account is not None and right.session_key is not None:
                until, data = sessions.get(right.session_key, (None, ""))
                reason = self._why_no_session(right, until, data, account.password, now)
            if reason is not None:
                ended[right] = reason
        return ended

    def _why_no_session(
        self, right: UserRight, until: datetime | None, data: str, password: str, now: datetime
    ) -> str | None:
        if until is None:
            return SIGNED_OUT
        if until <= now:
            return SESSION_OVER
        if self._verified.get(right) == (data, password):
            return None
        said = SessionStore().decode(data)
        if said.get(SESSION_KEY) != str(right.user_id):
            return SIGNED_OUT
        wanted = User(password=password).get_session_auth_hash()
        if not constant_time_compare(said.get(HASH_SESSION_KEY, ""), wanted):
            return PASSWORD_CHANGED
        self._verified[right] = (data, password)
        return None


def _batches(rights: list[T]) -> Iterator[list[T]]:
    left = iter(rights)
    while batch := list(islice(left, BATCH)):
        yield batch


def _ended_of_walls(rights: list[WallRight], now: datetime) -> dict[Right, str]:
    links = WallLink.objects.in_bulk({right.link_id for right in rights})
    asked = {right.screen_id for right in rights if right.screen_id is not None}
    there = WallScreen.objects.filter(pk__in=asked).values_list("pk", flat=True) if asked else ()
    gone = asked.difference(there)
    reasons = {
        right: why_closed(links.get(right.link_id), cluster=right.cluster, now=now)
        or (screens.ENDED if right.screen_id in gone else None)
        for right in rights
    }
    return {right: reason for right, reason in reasons.items() if reason is not None}


def _ended_of_tokens(rights: list[TokenRight], now: datetime) -> dict[Right, str]:
    """What is open uses its token all the time, so the look notes that too."""
    numbers = {right.token_id for right in rights}
    tokens = ApiToken.objects.select_related("user").in_bulk(numbers)
    found = {right: why_closed_token(tokens.get(right.token_id), now=now) for right in rights}
    note_use([tokens[right.token_id] for right in rights if found[right] is None], now=now)
    return {right: reason for right, reason in found.items() if reason is not None}


class _Account(msgspec.Struct, frozen=True):
    password: str
    is_active: bool
    may_read: bool


def _accounts(ids: Collection[int]) -> dict[int, _Account]:
    """The accounts that there are. Asked table by table: SQLite looks through one joined query
    ten times longer."""
    read = Permission.objects.filter(**READ).values_list("pk", flat=True)[:1]
    groups = list(Group.objects.filter(permissions__in=read).values_list("pk", flat=True))
    members = User.groups.through.objects.filter(user_id__in=ids, group_id__in=groups)
    by_themselves = User.user_permissions.through.objects.filter(
        user_id__in=ids, permission_id__in=read
    )
    readers = {
        *members.values_list("user_id", flat=True),
        *by_themselves.values_list("user_id", flat=True),
    }
    fields = ("pk", "password", "is_active", "is_superuser")
    return {
        pk: _Account(password, is_active, is_superuser or pk in readers)
        for pk, password, is_active, is_superuser in User.objects.filter(pk__in=ids).values_list(
            *fields
        )
    }


def _why_no_reader(account: _Account | None) -> str | None:
    if account is None:
        return DELETED
    if not account.is_active:
        return DEACTIVATED
    return None if account.may_read else MAY_NOT_READ
