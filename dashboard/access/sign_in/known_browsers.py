"""Browsers in which a person has signed in before: a signed cookie says for which account.

A stranger who guesses passwords slows down strangers. A known browser is slowed by its own
mistakes alone, so nobody can lock a person out of an account for good.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponseBase
from django.http.cookie import parse_cookie

COOKIE = "leaseboard_browser"
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
