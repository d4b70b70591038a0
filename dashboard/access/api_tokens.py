"""How programs get in: API tokens, bearer authentication, and refusals as problem JSON."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from threading import Lock

import msgspec
from django.conf import settings
from django.contrib.auth.models import User
from django.db import Error
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.crypto import constant_time_compare

from dashboard import clock
from dashboard.access.kept_secrets import digest_of, is_token_of, new_token
from dashboard.access.known_rights import KNOWN, ReadOnlyPerson, TokenRight, ask
from dashboard.access.roles import CLUSTERS, READ_SECURITY_LOG, READ_TRAIL, VIEW
from dashboard.access.security_log import SecurityEvent, client_address, full_address, record
from leases.models import ApiToken

logger = logging.getLogger(__name__)

PREFIX = "lbt_"  # lets scanners for secrets find a token, and the log cut it out
MAX_DAYS = 3650
NOTE_EVERY = timedelta(minutes=1)
MAKE = "Make a new one under /tokens/."
UNKNOWN = f"This API token is not known here: copy it whole. {MAKE}"
INACTIVE = "The account of this API token is deactivated. Ask an admin."
MAY_NOT_READ = "The person of this API token may not read Leases. Ask an admin."


def create(
    *, name: str, user: User, role: str, now: datetime, expires_at: datetime
) -> tuple[ApiToken, str]:
    """Make a token. Returns it with its text, which is stored nowhere."""
    text = PREFIX + new_token()
    token = ApiToken.objects.create(
        name=name,
        user=user,
        role=role,
        digest=digest_of(text),
        created_at=now,
        expires_at=expires_at,
    )
    return token, text


def roles_for(user: User) -> list[str]:
    """The roles that the tokens of this person can have."""
    needed = {"operator": VIEW, "admin": READ_SECURITY_LOG}
    return [role for role, permission in needed.items() if user.has_perm(permission)]


def find(text: str) -> ApiToken | None:
    """The token of this text, whether it still opens or not."""
    token = ApiToken.objects.select_related("user").filter(digest=digest_of(text)).first()
    return token if token is not None and is_token_of(text, token.digest) else None


def why_closed(token: ApiToken | None, *, now: datetime) -> str | None:
    """Why this token opens nothing, in a sentence; None: it opens."""
    if token is None:
        return UNKNOWN
    if token.revoked_at is not None:
        return f"This API token was revoked on {token.revoked_at:%Y-%m-%d at %H:%M} UTC. {MAKE}"
    if token.expires_at <= now:
        return f"This API token expired on {token.expires_at:%Y-%m-%d at %H:%M} UTC. {MAKE}"
    if not token.user.is_active:
        return INACTIVE
    return None if token.user.has_perm(VIEW) else MAY_NOT_READ


def note_use(tokens: Collection[ApiToken], *, now: datetime) -> None:
    """Write when these were last used, once a minute."""
    due = [
        token.pk
        for token in tokens
        if token.last_used_at is None or token.last_used_at <= now - NOTE_EVERY
    ]
    try:
        if due:
            ApiToken.objects.filter(pk__in=due).update(last_used_at=now)
    except Error as error:
        logger.info("When API tokens were used cannot be written just now: %s", error)


def revoke(number: int, *, now: datetime) -> bool:
    """Let the token open nothing from now on. Whether it opened until now."""
    open_one = ApiToken.objects.filter(pk=number, revoked_at=None).first()
    if open_one is None:
        return False
    open_one.revoked_at = now
    open_one.save(update_fields=["revoked_at"])  # tells dashboard.access.ended_rights
    return True


CONTENT_TYPE = "application/problem+json"
NO_TOKEN = "Send an API token as Authorization: Bearer TOKEN. A person makes one under /tokens/."  # noqa: S105
INVALID_TOKEN = 'Bearer error="invalid_token"'  # noqa: S105 - RFC 6750
_PROGRAM_FORMATS = frozenset({"json", "csv", "ndjson", "markdown"})


def problem_body(status: int, detail: str) -> bytes:
    title = HTTPStatus(status).phrase
    return msgspec.json.encode(
        {"type": "about:blank", "title": title, "status": status, "detail": detail}
    )


def problem(status: int, detail: str) -> HttpResponse:
    return HttpResponse(problem_body(status, detail), status=status, content_type=CONTENT_TYPE)


def challenge(detail: str, *, invalid: bool = False) -> HttpResponse:
    """401. `invalid`: a token was sent, but it opens nothing."""
    answer = problem(HTTPStatus.UNAUTHORIZED, detail)
    answer["WWW-Authenticate"] = INVALID_TOKEN if invalid else "Bearer"
    return answer


def is_program(request: HttpRequest) -> bool:
    """Whether the client wants data. A browser that follows a link always accepts HTML."""
    if request.headers.get("Authorization", "").lower().startswith("bearer "):
        return True
    accepted = request.headers.get("Accept", "")
    if "text/html" in accepted:
        return False
    return request.GET.get("format") in _PROGRAM_FORMATS or "json" in accepted


READS = {
    "operator": frozenset({VIEW, READ_TRAIL}),
    "admin": frozenset({VIEW, READ_TRAIL, READ_SECURITY_LOG, CLUSTERS}),
}


class TokenPerson(ReadOnlyPerson):
    """The token's person."""

    def __init__(self, token: ApiToken) -> None:
        super().__init__(token.user, READS[token.role])
        self.token = token

    def __str__(self) -> str:
        return f"The API token {self.token.name} of {self.username}"


def is_token_set() -> bool:
    return bool(settings.LEASEBOARD.metrics_token)


def sends_token(request: HttpRequest) -> bool:
    """Whether the request bears the token. Without a token in the settings nobody does."""
    given = request.headers.get("Authorization", "")
    wanted = f"Bearer {settings.LEASEBOARD.metrics_token}"
    return is_token_set() and constant_time_compare(given, wanted)


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
    return ask(("token", digest_of(text)), partial(_open, text, address))


def _open(text: str, address: str | None) -> ApiToken:
    now = clock.now()
    token = find(text)
    reason = why_closed(token, now=now)
    if token is not None and reason is None:
        note_use([token], now=now)
        KNOWN.note(("token", token.digest), TokenRight(token.pk), token, token.expires_at)
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
