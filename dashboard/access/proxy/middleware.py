"""Sign in the sender of each request whom the proxy names. No session is kept: the next request
needs the header again."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponseBase

from dashboard.access.proxy.accounts import user_by_proxy
from dashboard.access.proxy.headers import ProxyRefused


class ProxySignIn:
    """After Django's AuthenticationMiddleware, whose user it replaces."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            user = user_by_proxy(getattr(request, "scope", {"headers": ()}))
        except ProxyRefused:
            request.user = AnonymousUser()
            raise
        if user is not None:
            request.user = user
            request.by_proxy = True  # type: ignore[attr-defined]
        return self._get_response(request)
