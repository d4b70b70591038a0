"""What an admin does to the account of another, each with its line in the security log.

Open sessions and sockets end with the right they stand by: see `dashboard.access.rights`.
"""

from __future__ import annotations

import msgspec
from django.contrib.auth.models import Group, User
from django.db import transaction

from dashboard import clock
from dashboard.access.people.admins import keeping_an_admin
from dashboard.access.people.sessions import end_sessions
from dashboard.access.roles import ROLES
from dashboard.access.security_log import SecurityEvent, record
from dashboard.access.sign_in import links
from leases.models import Person


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
    links.withdraw(user)


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
    links.withdraw(user)
    by.note(SecurityEvent.LINK_CREATED, f"sign-in link for {user}")
    return links.create(user, now=clock.now())
