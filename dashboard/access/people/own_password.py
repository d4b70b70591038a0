"""Who changes their own password stays signed in on all pages of that browser, and on no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

from dashboard.board import running_board


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
