"""Signing in: by name and password, or by the one-time link that `serve` prints."""

from __future__ import annotations

from django.contrib.auth import get_user_model, login
from django.contrib.auth.models import User
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

LINK_SECONDS = 3600
SALT = "leaseboard.sign-in"

WAY_OUT = "Sign in with your password, or restart the server for a new link."
USED = f"This sign-in link has been used. {WAY_OUT}"
EXPIRED = f"This sign-in link has expired. {WAY_OUT}"
WRONG = "This is not a sign-in link of this server. Copy the whole link that the server printed."


class LinkError(ValueError):
    """A sign-in link that does not open; the text says what to do."""


def link_token(user: User) -> str:
    """A token that signs this user in once, within an hour.

    It names the last sign-in, so that any sign-in makes it void and nothing need be stored.
    """
    return signing.dumps([user.pk, _last(user)], salt=SALT)


def user_of(token: str) -> User:
    """The user a token stands for. Raises LinkError for one that is wrong, used or expired."""
    try:
        number, last = signing.loads(token, salt=SALT, max_age=LINK_SECONDS)
    except signing.SignatureExpired as error:
        raise LinkError(EXPIRED) from error
    except signing.BadSignature as error:
        raise LinkError(WRONG) from error
    user: User | None = get_user_model().objects.filter(pk=number, is_active=True).first()
    if user is None or _last(user) != last:
        raise LinkError(USED)
    return user


def _last(user: User) -> str:
    return user.last_login.isoformat() if user.last_login else "never"


@never_cache
@require_GET
def by_link(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in by the printed link; a link that does not open is 410 and offers the form."""
    try:
        user = user_of(token)
    except LinkError as error:
        context = {"link_error": str(error), "next": reverse("home")}
        return render(request, "registration/sign_in.html", context, status=410)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("home")
