"""Reads `Authorization: Bearer TOKEN`: the request then acts for the token's person and reads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Lock

from django.db import Error
from django.http import HttpRequest, HttpResponseBase

from dashboard import clock
from dashboard.access.metrics_token import sends_token
from dashboard.access.programs import api_tokens
from dashboard.access.programs.problem import challenge, problem
from dashboard.access.programs.token_person import TokenPerson
from dashboard.access.security_log import SecurityEvent, record
from dashboard.access.sign_in.client_address import client_address, full_address
from leases.models import ApiToken

PROBES = ("/healthz", "/readyz", "/metrics")  # answer also without a token, so also to a wrong one
READ = ("GET", "HEAD")
ONLY_READS = "API tokens only read: send GET or HEAD."
UNKNOWN_TOKEN = "unknown token"  # noqa: S105
MAX_NOTED = 10_000


class TokenRefused(Exception):
    """The text says why the token opens nothing and what to do."""


def bearer_of(authorization: str) -> str | None:
    """The token of an Authorization header; None for another scheme or none."""
    scheme, _, given = authorization.partition(" ")
    return given.strip() if scheme.lower() == "bearer" else None


def open_token(text: str, address: str | None) -> ApiToken:
    """The token, if it opens now. Raises TokenRefused, and keeps it in the security log."""
    now = clock.now()
    token = api_tokens.find(text)
    reason = api_tokens.why_closed(token, now=now)
    if token is not None and reason is None:
        api_tokens.note_use([token], now=now)
        return token
    number = token.pk if token is not None else None
    if REFUSALS.is_new((client_address(address), number), now):
        who = token.user.get_username() if token is not None else UNKNOWN_TOKEN
        record(
            SecurityEvent.TOKEN_USED_REFUSED,
            who=who,
            address=full_address(address),
            about=token.name if token is not None else "",
            outcome=(reason or "").split(". ")[0],
        )
    raise TokenRefused(reason)


class Refusals:
    """Which refusals were kept lately: a program that tries for ever is one line a minute."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str | None, int | None], datetime] = OrderedDict()
        self._lock = Lock()

    def is_new(self, what: tuple[str | None, int | None], now: datetime) -> bool:
        with self._lock:
            last = self._kept.get(what)
            if last is not None and abs(now - last) < timedelta(minutes=1):
                return False
            self._kept[what] = now
            self._kept.move_to_end(what)
            if len(self._kept) > MAX_NOTED:
                self._kept.popitem(last=False)
            return True


REFUSALS = Refusals()


class BearerMiddleware:
    """After Django's AuthenticationMiddleware, whose user it replaces."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = bearer_of(request.headers.get("Authorization", ""))
        if given is None or sends_token(request) or hasattr(request, "by_proxy"):
            return self._get_response(request)
        if request.path in PROBES:
            with suppress(TokenRefused, Error):
                self._act_for(request, given)
            return self._get_response(request)
        try:
            self._act_for(request, given)
        except TokenRefused as refused:
            return challenge(str(refused), invalid=True)
        if request.method not in READ:  # before Django looks for a CSRF token
            return problem(403, ONLY_READS)
        return self._get_response(request)

    @staticmethod
    def _act_for(request: HttpRequest, given: str) -> None:
        person = TokenPerson(open_token(given, request.META.get("REMOTE_ADDR")))

        async def auser() -> TokenPerson:
            return person

        request.user = person  # type: ignore[assignment]
        request.auser = auser  # type: ignore[assignment]
        request.api_token = person.token  # type: ignore[attr-defined]
