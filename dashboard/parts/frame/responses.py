"""How a page answers: whole or in part, as HTML or as JSON."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec
from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from dashboard.access.guards import ClusterRequest
from dashboard.access.rights.rights import UserRight, right_of_user
from dashboard.board import running_board
from dashboard.parts.kept.watched_cluster import WatchedCluster
from dashboard.parts.query.url_parameters import one_of
from leases.wire.microtime import format_microtime

logger = logging.getLogger(__name__)
FORMATS = ("", "html", "json")

LINES_AT_ONCE = 500
BAD_REQUEST = 400


def read_format(request: ClusterRequest, formats: Sequence[str] = FORMATS) -> str:
    """The format that a page is asked for. Raises BadFilter for one that it does not have."""
    return one_of(request.GET, "format", tuple(formats))


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
        shown = f"{request.path}?{query}" if query else request.path
        # What was typed stays in the address where it cannot be used.
        response["HX-Push-Url"] = request.get_full_path() if status == BAD_REQUEST else shown
    return response


def json(answer: dict[str, Any], *, status: int = 200) -> HttpResponse:
    body = msgspec.json.encode(answer)
    return HttpResponse(body, content_type="application/json", status=status)


def items(
    found: list[dict[str, Any]],
    *,
    total: int,
    next_url: str | None,
    now: datetime,
    known: WatchedCluster | None = None,
) -> HttpResponse:
    """A list for other programs, as docs/api.md has it.

    `known`: the cluster whose present state the items show, which may be stale.
    """
    answer = {"items": found, "total": total, "next": next_url, "now": format_microtime(now)}
    if known is not None:
        read_at = known.read_at(now)
        answer["as_of"] = None if read_at is None else format_microtime(read_at)
        answer["connection"] = known.store.connection.state.value
    return json(answer)


def stream(
    request: ClusterRequest, lines: Iterator[str], *, content_type: str, filename: str
) -> StreamingHttpResponse:
    """Lines as they are made, a few at a time: Django would gather a plain iterator's in memory
    before it sent the first one of them through ASGI. HEAD asks for none of them.
    """
    if request.method == "HEAD":
        lines = iter(())
    by_asgi = isinstance(request, ASGIRequest)
    parts: Iterator[str] | AsyncIterator[str] = lines
    if by_asgi:
        parts = _parts(lines, right_of_user(request.user, request.session), filename)
    response = StreamingHttpResponse(parts, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response


async def _parts(lines: Iterator[str], right: UserRight, filename: str) -> AsyncIterator[str]:
    """The lines in parts, each made in the thread of the database.

    An answer of millions of lines lasts for minutes. It is cut when the right to read ends: the
    connection breaks, so that nobody takes the part for the whole.
    """
    rights = running_board().rights
    ended: list[str] = []
    grant = rights.add(right, ended.append)

    def next_part() -> str:
        return "".join(islice(lines, LINES_AT_ONCE))

    try:
        while part := await sync_to_async(next_part)():
            if ended:
                logger.warning("%s was cut while it was sent: %s", filename, ended[0])
                raise asyncio.CancelledError  # as Django itself ends an answer that nobody reads
            yield part
    finally:
        rights.remove(grant)
