"""The sessions in which people are signed in, read from Django's own table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from dashboard import clock
from dashboard.access.sign_in.client_address import full_address
from dashboard.access.tokens import digest_of

ORIGIN = "signed_in"  # key in the session's data
MAX_BROWSER = 200


class OpenSession(msgspec.Struct, frozen=True):
    """One browser in which somebody is signed in; `id` is no key that opens it."""

    id: str
    user_id: int
    ends_at: datetime
    began_at: datetime | None  # None, and no address: from an earlier version
    address: str
    browser: str
    is_this: bool = False


def note_origin(request: HttpRequest) -> None:
    """Keep in the session of who signed in just now when, where from, and with what."""
    request.session[ORIGIN] = [
        clock.now().isoformat(),
        full_address(request.META.get("REMOTE_ADDR")),
        request.headers.get("User-Agent", "")[:MAX_BROWSER],
    ]


def open_sessions(own_key: str | None = None) -> Iterator[OpenSession]:
    """All of everybody but those of before a new password, which open nothing any more. Decodes
    each: Django keeps no column that says whose it is.
    """
    store = SessionStore()
    hashes = {user.pk: user.get_session_auth_hash() for user in User.objects.only("password")}
    for row in Session.objects.filter(expire_date__gt=clock.now()).order_by("-expire_date"):
        said = store.decode(row.session_data)
        mine = hashes.get(int(said.get(SESSION_KEY, 0)))
        if mine is None or not constant_time_compare(said.get(HASH_SESSION_KEY, ""), mine):
            continue
        began, address, browser = said.get(ORIGIN, ("", "", ""))
        yield OpenSession(
            digest_of(row.session_key),
            int(said[SESSION_KEY]),
            row.expire_date,
            datetime.fromisoformat(began) if began else None,
            address,
            _short(browser),
            row.session_key == own_key,
        )


def end_sessions(user: User, only: str | None = None) -> int:
    """End the person's sessions, or the one of this id. Returns how many ended."""
    ids = {one.id for one in open_sessions() if one.user_id == user.pk and only in (None, one.id)}
    keys = Session.objects.values_list("session_key", flat=True)
    ended = [key for key in keys if digest_of(key) in ids]
    Session.objects.filter(session_key__in=ended).delete()
    return len(ended)


def _short(browser: str) -> str:
    """Its name in a User-Agent that names several: Edge is also Chrome, which is also Safari."""
    for mark, name in (
        ("Edg/", "Edge"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ):
        if mark in browser:
            return name
    return browser.partition("/")[0][:40]
