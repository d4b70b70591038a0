"""Refusals for programs: 401 and 403 as `application/problem+json` (RFC 9457) instead of HTML."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from django.http import HttpRequest, HttpResponse

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
