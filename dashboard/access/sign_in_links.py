"""Sign-in links: each signs one user in, once, within an hour.

Opening a link does not use it up, so that a mail scanner costs nobody the link. Only `redeem` does.
"""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User

from dashboard.access.kept_secrets import digest_of, is_token_of, new_token
from leases.models import SignInLink

VALID_FOR = timedelta(hours=1)
REMEMBERED_FOR = timedelta(days=1)  # so long an old link is told apart from a wrong one

WAY_OUT = (
    "Sign in with your password, or ask for a new link: an admin makes one under People, "
    "and manage.py sign_in_link on the server."
)
USED = f"This sign-in link has been used. {WAY_OUT}"
EXPIRED = f"This sign-in link has expired. {WAY_OUT}"
INACTIVE = "The account of this sign-in link is deactivated. Ask an admin to activate it."
WRONG = "This is not a sign-in link of this server. Copy the whole link that the server printed."


class LinkError(ValueError):
    """A sign-in link that does not open; the text says what to do."""


def create(user: User, *, now: datetime) -> str:
    """Make a link for this user. Returns its token, which is stored nowhere."""
    SignInLink.objects.filter(expires_at__lt=now - REMEMBERED_FOR).delete()
    token = new_token()
    SignInLink.objects.create(
        digest=digest_of(token), user=user, created_at=now, expires_at=now + VALID_FOR
    )
    return token


def withdraw(user: User) -> None:
    """End the links of this user that nobody has used."""
    SignInLink.objects.filter(user=user, used_at=None).delete()


def find_user(token: str, *, now: datetime) -> User:
    """The user whom this token signs in. Raises LinkError for one that does not open."""
    link = SignInLink.objects.select_related("user").filter(digest=digest_of(token)).first()
    if link is None or not is_token_of(token, link.digest):
        raise LinkError(WRONG)
    if link.used_at is not None:
        raise LinkError(USED)
    if link.expires_at <= now:
        raise LinkError(EXPIRED)
    if not link.user.is_active:
        raise LinkError(INACTIVE)
    user: User = link.user
    return user


def redeem(token: str, *, now: datetime) -> User:
    """Use the link up. Of any number of requests at the same instant, one gets the user.

    The condition stands in the UPDATE itself, so the database decides who was first. It names the
    link's own columns alone: a join becomes a subquery, which PostgreSQL does not look at again
    after it has waited for another's UPDATE.
    """
    user = find_user(token, now=now)
    unused = SignInLink.objects.filter(digest=digest_of(token), used_at=None, expires_at__gt=now)
    if unused.update(used_at=now) != 1:
        raise LinkError(USED)
    return user


class EndSignInLinks:
    """No validator: Django tells each of its validators of a new password that was saved."""

    def validate(self, password: str, user: Any = None) -> None:
        """Accept every password."""

    def password_changed(self, password: str, user: Any = None) -> None:
        del password
        withdraw(user)

    def get_help_text(self) -> str:
        return "A new password ends the sign-in links that were not used."
