"""What happens to accounts and their sessions: changes by an admin, and by their owners.

Open sessions and sockets end with the right they stand by: see `dashboard.access.rights`.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import msgspec
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import Group, User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare

from dashboard import clock
from dashboard.access import sign_in_links
from dashboard.access.kept_secrets import digest_of
from dashboard.access.roles import ROLES, keeping_an_admin
from dashboard.access.security_log import SecurityEvent, full_address, record
from dashboard.board import running_board
from leases.models import Person

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


class Admin(msgspec.Struct, frozen=True):
    """Who does it, and from which address."""

    name: str
    address: str

    def note(self, event: SecurityEvent, about: str) -> None:
        record(event, who=self.name, address=self.address, about=about)


def add_person(name: str, role: str, by: Admin) -> tuple[User, str]:
    """Make an account without a password. Returns it with the token of its first sign-in link."""
    with transaction.atomic():
        user = User.objects.create_user(name)
        user.groups.add(Group.objects.get(name=role))
    by.note(SecurityEvent.ROLE_CHANGED, f"{name}: added as {role}")
    return user, _sign_in_link(user, by)


def set_role(user: User, role: str, by: Admin) -> None:
    """Give this one of the two roles, none for ""; further groups stay. Raises LastAdmin."""
    wanted = {role} - {""}
    had = set(user.groups.filter(name__in=ROLES).values_list("name", flat=True))
    if had == wanted:
        return
    with keeping_an_admin():
        user.groups.remove(*Group.objects.filter(name__in=had - wanted))
        user.groups.add(*Group.objects.filter(name__in=wanted - had))
    shown = " and ".join(sorted(had)) or "no role"
    by.note(SecurityEvent.ROLE_CHANGED, f"{user}: {shown} to {role or 'no role'}")


def deactivate(user: User, by: Admin) -> None:
    """Close the account, with its sessions and unused sign-in links. Raises LastAdmin."""
    with keeping_an_admin():
        user.is_active = False
        user.save(update_fields=["is_active"])
        end_ways_in(user)
    by.note(SecurityEvent.DEACTIVATED, str(user))


def end_ways_in(user: User) -> None:
    """End the sessions and unused sign-in links of a closed account: they would open it again once
    it is activated."""
    end_sessions(user)
    sign_in_links.withdraw(user)


def activate(user: User, by: Admin) -> None:
    user.is_active = True
    user.save(update_fields=["is_active"])
    by.note(SecurityEvent.ROLE_CHANGED, f"{user}: activated")


def reset_password(user: User, by: Admin) -> str:
    """Take the password away, which ends all sessions. Returns the token of a sign-in link."""
    user.set_unusable_password()
    user.save(update_fields=["password"])
    by.note(SecurityEvent.PASSWORD_CHANGED, f"{user}: reset")
    return _sign_in_link(user, by)


def open_for_proxy(user: User, by: Admin) -> None:
    """Let the proxy sign in an account that existed before."""
    Person.objects.update_or_create(user=user, defaults={"by_proxy": True})
    by.note(SecurityEvent.ROLE_CHANGED, f"{user}: opened for the proxy")


def _sign_in_link(user: User, by: Admin) -> str:
    sign_in_links.withdraw(user)
    by.note(SecurityEvent.LINK_CREATED, f"sign-in link for {user}")
    return sign_in_links.create(user, now=clock.now())


def keep_own_pages(
    change_password: Callable[..., HttpResponse], request: HttpRequest, *args: Any, **named: Any
) -> HttpResponse:
    """Call Django's view, which gives the session another key when the password is its user's.

    The session is saved at once, so that the sockets it opened stand by the new key.
    """
    old = request.session.session_key
    with running_board().rights.renewing(request.session):
        response = change_password(request, *args, **named)
        if request.session.session_key != old:
            request.session.save()
        return response
