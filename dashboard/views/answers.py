"""How a page answers: whole or in part, as HTML or as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from dashboard.access import ClusterRequest
from leases.wire.microtime import format_microtime


def page(
    request: ClusterRequest,
    whole: str,
    part: str,
    context: dict[str, Any],
    *,
    query: str = "",
    status: int = 200,
) -> HttpResponse:
    """htmx gets the part that changes; others, and htmx going back in history, the whole page.

    `query` is the page's state as its URL has it, without the empty fields of a form.
    """
    partial = request.htmx and not request.htmx.history_restore_request
    response = render(request, part if partial else whole, context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    if partial:
        response["HX-Push-Url"] = f"{request.path}?{query}" if query else request.path
    return response


def json(answer: dict[str, Any], *, status: int = 200) -> HttpResponse:
    body = msgspec.json.encode(answer)
    return HttpResponse(body, content_type="application/json", status=status)


def items(
    found: list[dict[str, Any]], *, total: int, next_url: str | None, now: datetime
) -> HttpResponse:
    """A list for other programs, as README's "JSON" has it."""
    answer = {"items": found, "total": total, "next": next_url, "now": format_microtime(now)}
    return json(answer)
