"""The answers to refused and failed requests."""

import sys
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import DisallowedHost, RequestDataTooBig, TooManyFieldsSent
from django.db import Error
from django.db.models import F
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.defaults import page_not_found

from dashboard.access.api_tokens import is_program, problem
from dashboard.access.guards import NoRole, NotText
from dashboard.access.known_rights import stands_in
from dashboard.access.roles import active_admins
from dashboard.log_lines import redact
from dashboard.parts.page_context import THEMES
from dashboard.parts.page_links import NotKnown
from leases.history.database import AWAY, reach

MAX_ADMINS = 5  # named to a person without a role


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403 with the reason; a person without a role sees whom to ask, and can sign out.

    503 if only what is remembered of the person says so, because the database does not answer.
    """
    if stands_in(request.user):
        if is_program(request):
            return problem(503, AWAY_TEXT)
        return _alone(request, AWAY_TITLE, AWAY_TEXT, status=503)
    if is_program(request):
        return problem(403, str(exception))
    if isinstance(exception, NoRole):
        return render(request, "no_role.html", {"admins": _admins()}, status=403)
    return render(request, "403.html", {"exception": str(exception)}, status=403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404 with the reason."""
    if is_program(request):
        said = exception.args[0] if exception.args else ""
        return problem(404, said if isinstance(said, str) else "Check the address.")
    if isinstance(exception, NotKnown):
        return render(
            request, "404.html", {"exception": str(exception), "more": exception}, status=404
        )
    return page_not_found(request, exception)


def _admins() -> list[str]:
    """The people who can give a role; who signed in last comes first."""
    last_seen = F("last_login").desc(nulls_last=True)
    return [
        admin.get_full_name() or admin.get_username()
        for admin in active_admins().order_by(last_seen, "username")[:MAX_ADMINS]
    ]


OURS = "Something broke on our side"
LOOK = (
    "The server's log says what happened. Reload the page; if it breaks again, tell whoever runs "
    "Leaseboard."
)
REFUSED = "The database refuses"
WAITED = "The database does not answer"
AWAY_TITLE = "History is not reachable"
AWAY_TEXT = (
    "The database does not answer: reload this page in a few seconds; overview, Leases and wall "
    "work meanwhile."
)
NOT_READ = "This request cannot be read"


def broken(request: HttpRequest) -> HttpResponse:
    """503 if the database refused, for example on a full or read-only disk; else 500."""
    error = sys.exc_info()[1]
    refused = isinstance(error, Error)
    title, text = OURS, LOOK
    if isinstance(error, AWAY) and reach.error:
        title, text = AWAY_TITLE, AWAY_TEXT
    elif isinstance(error, Error) and _waited_in_vain(error):
        title = WAITED
        text = (
            "It gave no connection in time: it is busy, or cannot be reached. Reload the page in a "
            "few seconds."
        )
    elif refused:
        title = REFUSED
        said = f"The database says: {redact(str(error))}. " if _is_signed_in(request) else ""
        text = (
            f"{said}Make room on the disk or repair the database, and try again; then "
            "look whether what you did is there."
        )
    return _alone(request, title, text, status=503 if refused else 500)


def _waited_in_vain(error: Error) -> bool:
    # Not imported above: with SQLite nothing else needs it, and it takes 9 MiB.
    pool = sys.modules.get("psycopg_pool")
    return pool is not None and isinstance(error.__cause__, pool.PoolTimeout)


def _is_signed_in(request: HttpRequest) -> bool:
    """Without asking the database again. Strangers do not learn its address."""
    user = getattr(request, "_cached_user", None)
    return user is not None and user.is_authenticated


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400 for what Django refuses before any view; the text does not repeat what was sent."""
    if isinstance(exception, DisallowedHost):
        text = (
            "Leaseboard does not answer to the host name of this address. Use another name of it, "
            "or add this one to LEASEBOARD_ALLOWED_HOSTS."
        )
    elif isinstance(exception, TooManyFieldsSent):
        most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        text = f"It has more than {most:,} parameters. Leave some out."
    elif isinstance(exception, RequestDataTooBig):
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        text = f"It has more than {most:,} bytes. Send less at once."
    elif isinstance(exception, NotText):
        text = str(exception)
    else:
        text = "Check the address, or go to the overview and try again from there."
    return _alone(request, NOT_READ, text, status=400)


class WrongMethod:
    """Middleware. Says why an address answers 405: it takes what a form sends, for example."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self._get_response(request)
        if not isinstance(answer, HttpResponseNotAllowed) or answer.content:
            return answer
        allowed = answer.headers["Allow"]
        if is_program(request):
            made = problem(405, f"This address takes {allowed} alone.")
        elif "GET" in allowed:
            text = "This address shows a page and takes no form. Open it again from the overview."
            made = _alone(request, "Nothing was changed", text, status=405)
        else:
            text = "This address takes what a form sends. Go back to the page with the form."
            made = _alone(request, "Nothing to show here", text, status=405)
        made.headers["Allow"] = allowed
        return made


def _alone(request: HttpRequest, title: str, text: str, *, status: int) -> HttpResponse:
    theme = request.COOKIES.get("theme", "")
    context = {"title": title, "text": text, "theme": theme if theme in THEMES else ""}
    return HttpResponse(render_to_string("500.html", context), status=status)
