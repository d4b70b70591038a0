"""By what right somebody reads, and whom this process may serve while the database does not answer.

Whoever read within the last ten minutes, or has a page open, may go on reading until the database
answers again; never longer than the session, link or token lasts. Nobody may write meanwhile. Each
two seconds `dashboard.access.ended_rights` asks which of these rights have ended.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import msgspec
from django.contrib import auth
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from dashboard import clock
from dashboard.access.roles import VIEW
from leases.history.database import AWAY, reach

T = TypeVar("T")

KEPT_SECONDS = 600.0  # since the database last said that the right stands
MAX_KNOWN = 2000


class UserRight(msgspec.Struct, frozen=True):
    """A signed-in user who may read. Ends with the session or with the user's permission."""

    user_id: int
    session_key: str | None  # None: who opened it has no session: the proxy signed him in


class WallRight(msgspec.Struct, frozen=True):
    """Whoever has a wall link that opens this cluster, or the wall of some or all of them ("")."""

    link_id: int
    cluster: str
    clusters: tuple[str, ...] = ()  # of the wall of several; none are all
    screen_id: int | None = None  # None: the link itself opened it


class TokenRight(msgspec.Struct, frozen=True):
    """A program with an API token."""

    token_id: int


Right = UserRight | WallRight | TokenRight


class ReadOnlyPerson:
    """Stands in for `request.user`: somebody who may only read."""

    is_active = is_authenticated = True
    is_anonymous = is_staff = is_superuser = False

    def __init__(self, user: Any, permissions: Collection[str] = frozenset({VIEW})) -> None:
        self.pk = self.id = user.pk
        self.username: str = user.get_username()
        self._permissions = frozenset(filter(user.has_perm, permissions))

    def __str__(self) -> str:
        return self.username

    def get_username(self) -> str:
        return self.username

    def has_perm(self, permission: str, obj: object = None) -> bool:
        return permission in self._permissions

    def has_perms(self, permissions: Collection[str], obj: object = None) -> bool:
        return self._permissions.issuperset(permissions)

    def has_module_perms(self, app_label: str) -> bool:
        return any(one.startswith(f"{app_label}.") for one in self._permissions)


def stands_in(user: object) -> bool:
    """Whether this is what is remembered of a person; a token's person is no other than this."""
    return user.__class__ is ReadOnlyPerson  # through Django's lazy object


class Known(msgspec.Struct):
    """What opened something, as the database last had it."""

    right: Right
    found: Any
    until: datetime | None
    confirmed_at: float  # by the monotonic clock


class KnownRights:
    """Any thread may use it."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._known: OrderedDict[Hashable, Known] = OrderedDict()
        self._lock = Lock()

    def note(self, by: Hashable, right: Right, found: Any, until: datetime | None) -> None:
        """The database has just said that this opens; `by` is what it was looked up by."""
        with self._lock:
            self._known[by] = Known(right, found, until, self._monotonic())
            self._known.move_to_end(by)
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)

    def forget(self, by: Hashable) -> None:
        with self._lock:
            self._known.pop(by, None)

    def find(self, by: Hashable, now: datetime) -> Known | None:
        """What it opened lately, if that right has not run out by now."""
        known = self._known.get(by)
        if known is None or not self._is_fresh(known):
            return None
        return known if known.until is None or known.until > now else None

    def _is_fresh(self, known: Known) -> bool:
        return self._monotonic() - known.confirmed_at < KEPT_SECONDS

    @property
    def rights(self) -> set[Right]:
        """Those that are known yet; the others are forgotten."""
        with self._lock:
            for by in [by for by, known in self._known.items() if not self._is_fresh(known)]:
                del self._known[by]
            return {known.right for known in self._known.values()}

    def confirm(self, in_use: Collection[Right], ended: Mapping[Right, str]) -> None:
        """The database has just said which rights have ended; those that something is open by
        count from now on."""
        now, in_use = self._monotonic(), frozenset(in_use)
        with self._lock:
            for by, known in list(self._known.items()):
                if known.right in ended:
                    del self._known[by]
                elif known.right in in_use:
                    known.confirmed_at = now


KNOWN = KnownRights()


def ask(by: Hashable, read: Callable[[], T]) -> T:
    """What `read` finds in the database; while it does not answer, what this opened lately.

    `read` notes in KNOWN what may be found again.
    """
    known = KNOWN.find(by, clock.now())
    if known is not None and reach.error:
        return known.found  # type: ignore[no-any-return]
    try:
        return read()
    except AWAY as error:
        reach.failed(error)
        if known is None:
            raise
        return known.found  # type: ignore[no-any-return]
    except Exception:
        KNOWN.forget(by)
        raise


def user_of(session_holder: Any) -> Any:
    """The user of a request or a socket, by its session."""
    return ask(("session", session_holder.session.session_key), partial(_user_of, session_holder))


def _user_of(session_holder: Any) -> Any:
    session = session_holder.session
    key, user = session.session_key, auth.get_user(session_holder)
    if key is None or not (user.is_authenticated and user.has_perm(VIEW)):
        KNOWN.forget(("session", key))
    else:
        until = getattr(session, "expires_at", None)
        KNOWN.note(("session", key), UserRight(user.pk, key), ReadOnlyPerson(user), until)
    return user


class SignedIn(AuthenticationMiddleware):
    """Django's, for people who are known also without the database."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = SimpleLazyObject(partial(_cached, request))  # type: ignore[assignment]


def _cached(request: Any) -> Any:
    if not hasattr(request, "_cached_user"):
        request._cached_user = user_of(request)  # noqa: SLF001 - as Django names it
    return request._cached_user  # noqa: SLF001
