"""How failed sign-ins slow down further ones, and which browsers are known.

A stranger who guesses passwords slows down strangers. A known browser is slowed by its own
mistakes alone, so nobody can lock a person out of an account for good.

After MAX_FAILURES wrong passwords from one address, or four times as many for one account, no
further password is checked for COOL_OFF. A browser in which the person has signed in before has
a count of its own. Nothing is written while a client is refused, so a flood writes nothing.
"""

import logging
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import msgspec
from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.db.models import F, Max, QuerySet, Sum
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.http.cookie import parse_cookie
from django.shortcuts import render
from django.utils import timezone

from dashboard.access.security_log import OK, SecurityEvent, full_address, record

COOKIE = f"leaseboard_browser_{settings.BOARD_MARK}"
SALT = "leaseboard.known-browser"
KNOWN_SECONDS = 180 * 24 * 3600


def remember_browser(response: HttpResponseBase, username: str) -> None:
    """This browser is known for the account from now on."""
    response.set_cookie(
        COOKIE,
        signing.dumps([username, secrets.token_urlsafe(12)], salt=SALT),
        max_age=KNOWN_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def browser_of(request: HttpRequest, username: str | None) -> str | None:
    """What a browser that is known for this account is called; None for any other."""
    known = _read(request.COOKIES.get(COOKIE))
    return known[1] if known is not None and known[0] == username else None


def is_known_browser(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the browser is known for any account, judged before the form is read."""
    for name, value in headers:
        if name == b"cookie" and COOKIE.encode() in value:
            return _read(parse_cookie(value.decode("latin-1")).get(COOKIE)) is not None
    return False


def _read(cookie: str | None) -> list[str] | None:
    try:
        known: list[str] = signing.loads(cookie or "", salt=SALT, max_age=KNOWN_SECONDS)
    except signing.BadSignature:
        return None
    return known


MAX_ADDRESSES = 10_000


class SlowedAddresses:
    """Written by the threads that check passwords, read by the event loop."""

    def __init__(self) -> None:
        self._until: OrderedDict[str, datetime] = OrderedDict()
        self._lock = Lock()

    def slow(self, address: str, until: datetime) -> bool:
        """Refuse this address until then; whether that is news."""
        with self._lock:
            news = self._until.pop(address, None) != until
            self._until[address] = until
            if len(self._until) > MAX_ADDRESSES:
                self._until.popitem(last=False)
        return news

    def remaining(self, address: str | None, now: datetime) -> timedelta | None:
        """How long the address is still refused; None when it is not."""
        until = self._until.get(address) if address is not None else None
        return until - now if until is not None and until > now else None


SLOWED = SlowedAddresses()


logger = logging.getLogger(__name__)

MAX_FAILURES: int = settings.AXES_FAILURE_LIMIT
COOL_OFF: timedelta = settings.AXES_COOLOFF_TIME
ACCOUNT_SHARE = 4  # an account bears so many addresses that fail, so that one cannot close it
CLEAN_SECONDS = 30.0
STRANGER = ""
TOO_MANY = (
    "Too many wrong passwords were given for this account or from your address. Try again in "
    "{seconds} seconds. A browser in which you have signed in before does not have to wait for "
    "the mistakes of others."
)


class Failures(msgspec.Struct, frozen=True):
    """Those of one address, account or browser within COOL_OFF of each other."""

    count: int
    last_at: datetime | None

    def until(self) -> datetime:
        """When they no longer count."""
        return (self.last_at or timezone.now()) + COOL_OFF


class SignInLimits(AxesDatabaseHandler):  # type: ignore[misc]
    """A row per account, address and known browser, with how often it failed lately."""

    _cleaned_at = float("-inf")

    def get_failures(self, request: Any, credentials: dict[str, Any] | None = None) -> int:
        username = (credentials or {}).get("username")
        recent = _recent(request.axes_attempt_time)
        browser = browser_of(request, username)
        if browser is not None:
            found = _sum(recent.filter(username=username, user_agent=browser))
            request.slowed_until = found.until()
            return found.count
        recent = recent.filter(user_agent=STRANGER)
        address = _sum(recent.filter(ip_address=request.axes_ip_address))
        account = _sum(recent.filter(username=username))
        if address.count >= MAX_FAILURES and request.axes_ip_address is not None:
            _slow(request, username or "", address.until())
        request.slowed_until = (address if address.count >= MAX_FAILURES else account).until()
        return max(address.count, account.count // ACCOUNT_SHARE)

    def user_login_failed(
        self, sender: Any, credentials: dict[str, Any], request: Any = None, **kwargs: Any
    ) -> None:
        if request is None:
            return
        # Not what the browser calls itself: each name would be a row, and could be a known one's.
        browser = browser_of(request, credentials.get("username"))
        request.axes_user_agent = browser or STRANGER
        if not request.axes_locked_out:
            logger.warning(
                "Sign-in of %s failed: wrong name or password", _who(request, credentials)
            )
            name = str(credentials.get("username"))
            _record(request, SecurityEvent.SIGN_IN_REFUSED, name, "wrong name or password")
        super().user_login_failed(sender, credentials, request, **kwargs)

    def user_logged_in(self, sender: Any, request: Any, user: User, **kwargs: Any) -> None:
        logger.info("Sign-in of %s succeeded", _who(request, {"username": user.get_username()}))
        _record(request, SecurityEvent.SIGN_IN, user.get_username())

    def user_logged_out(self, sender: Any, request: Any, user: User | None, **kwargs: Any) -> None:
        if user is not None:
            _record(request, SecurityEvent.SIGN_OUT, user.get_username())

    def clean_expired_user_attempts(
        self, request: Any = None, credentials: dict[str, Any] | None = None
    ) -> int:
        """Forget old failures, now and then; not for a client that is refused."""
        if request.axes_locked_out or time.monotonic() - self._cleaned_at < CLEAN_SECONDS:
            return 0
        self._cleaned_at = time.monotonic()
        count: int = super().clean_expired_user_attempts(request, credentials)
        return count


def _recent(now: datetime) -> QuerySet[Any]:
    """Bounded above too, or failures from before the clock was set back would count for long."""
    attempts: QuerySet[Any] = AccessAttempt.objects.all()
    return attempts.filter(attempt_time__gt=now - COOL_OFF, attempt_time__lt=now + COOL_OFF)


def _sum(attempts: QuerySet[Any]) -> Failures:
    found = attempts.aggregate(count=Sum("failures_since_start"), last=Max("attempt_time"))
    return Failures(found["count"] or 0, found["last"])


def _slow(request: Any, username: str, until: datetime) -> None:
    if SLOWED.slow(request.axes_ip_address, until):
        wait = f"refused for {COOL_OFF.seconds} s"
        logger.warning("Sign-ins from %s are %s", request.axes_ip_address, wait)
        _record(request, SecurityEvent.SIGN_IN_REFUSED, username, f"too many mistakes: {wait}")


def _record(request: Any, event: SecurityEvent, username: str, outcome: str = OK) -> None:
    address = full_address(request.META.get("REMOTE_ADDR"))
    record(event, who=username, address=address, outcome=outcome)


def _who(request: Any, credentials: dict[str, Any]) -> str:
    """Name and address; what was typed is shortened, and cannot begin a line of its own."""
    return f"{str(credentials.get('username'))[:150]!r} from {request.axes_ip_address}"


SCREEN_CODE = "(code of a screen)"
NO_ADDRESS = "::"  # of a client on a Unix socket; of two rows without one, neither is a duplicate
T = TypeVar("T")


class TooManyCodes(Exception):
    """An address gave too many wrong codes, or wrong passwords, lately."""

    def __init__(self, until: datetime) -> None:
        self.seconds = max(1, math.ceil((until - timezone.now()).total_seconds()))
        super().__init__(f"Too many wrong codes came from here. Try again in {self.seconds} s.")


def try_code(address: str | None, redeem: Callable[[], T | None]) -> T | None:
    """What `redeem` finds; None is a wrong code. Raises TooManyCodes.

    A try counts before it is known to be wrong: no number of processes lets more of them through.
    """
    now, address = timezone.now(), address or NO_ADDRESS
    failures = partial(_failures_of, address, now)
    if (found := failures()).count >= MAX_FAILURES:
        raise TooManyCodes(found.until())
    kept = AccessAttempt.objects.filter(username=SCREEN_CODE)
    kept.filter(attempt_time__lte=now - COOL_OFF).delete()
    row, _ = kept.get_or_create(
        username=SCREEN_CODE,
        ip_address=address,
        user_agent=STRANGER,
        defaults={"failures_since_start": 0},
    )
    mine = kept.filter(pk=row.pk)
    mine.update(failures_since_start=F("failures_since_start") + 1, attempt_time=now)
    if (found := failures()).count > MAX_FAILURES:
        raise TooManyCodes(found.until())
    redeemed = redeem()
    if redeemed is not None:
        mine.update(failures_since_start=F("failures_since_start") - 1)
    return redeemed


def _failures_of(address: str | None, now: datetime) -> Failures:
    return _sum(_recent(now).filter(ip_address=address, user_agent=STRANGER))


def refuse(
    request: HttpRequest, original: HttpResponse | None, credentials: dict[str, Any] | None
) -> HttpResponse:
    """The sign-in page with when to try again; django-axes calls it for who is slowed."""
    del original
    until: datetime = getattr(request, "slowed_until", timezone.now() + COOL_OFF)
    seconds = max(1, math.ceil((until - timezone.now()).total_seconds()))
    context = {
        "slowed": TOO_MANY.format(seconds=seconds),
        "username": str((credentials or {}).get("username") or "")[:150],
        "next": request.POST.get("next", ""),
    }
    answer = render(request, "registration/sign_in.html", context, status=429)
    answer["Retry-After"] = str(seconds)
    return answer


PATHS = frozenset({"/sign-in/", "/admin/login/"})

# A check takes a core for a third of a second. Browsers that somebody has signed in with have a
# line of their own, which strangers cannot fill.
AT_ONCE = 1
WAITING = 8
# A flood from one address leaves room for others.
WAITING_PER_ADDRESS = 2
WAITING_PER_KNOWN_ADDRESS = 4


def checks_password(scope: Mapping[str, Any]) -> bool:
    """Whether the request carries a password to check."""
    return scope["method"] == "POST" and scope["path"] in PATHS
