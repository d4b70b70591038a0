"""How a page answers: as a whole page or a part of it, as JSON, or as a stream."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Any

import msgspec
from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django_htmx.http import push_url

from dashboard.access.guards import REGIONS, ClusterRequest
from dashboard.access.rights import right_of_user, still_may
from dashboard.access.roles import VIEW
from dashboard.access.security_log import SecurityEvent, record_by
from dashboard.board import running_board
from dashboard.lists.url_parameters import one_of
from dashboard.watched_cluster import WatchedCluster
from leases.domain.watched_times import ConnectionState
from leases.wire.microtime import format_microtime, microtime_or_none

logger = logging.getLogger(__name__)
FORMATS = ("", "html", "json")

LINES_AT_ONCE = 500
ROLE_TAKEN = "Your role does not allow this export any more."
BAD_REQUEST = 400


def read_format(request: HttpRequest, formats: Sequence[str] = FORMATS) -> str:
    """Read `?format=`. Raises BadFilter for a format that the page does not have."""
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
    """Answer htmx with the part, and everybody else with the whole page: also htmx going back in
    history, and an open page that fetches parts, some of which lie beside `part`.

    `query` is the query string of the page's state, without the empty fields of a form.
    """
    wants_all = request.htmx.history_restore_request or REGIONS in request.headers
    partial = request.htmx and not wants_all
    response = render(request, part if partial else whole, context, status=status)
    patch_vary_headers(response, ["HX-Request", REGIONS])
    if partial:
        shown = f"{request.path}?{query}" if query else request.path
        # A refused filter stays in the address as it was typed.
        push_url(response, request.get_full_path() if status == BAD_REQUEST else shown)
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
    told: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """As docs/api.md has it. `told`: what is said beside the items, such as `unless_live`."""
    answer = {"items": found, "total": total, "next": next_url, "now": format_microtime(now)}
    return json(answer | dict(told or {}))


def unless_live(known: WatchedCluster, now: datetime) -> dict[str, Any]:
    """The fields that say since when an answer may be outdated; none while the watch is live."""
    told = known.store.connection.shown(now)
    if told.state is ConnectionState.LIVE:
        return {}
    behind = {"behind_seconds": round(told.lag_seconds, 3)} if told.lag_seconds else {}
    as_of = microtime_or_none(known.read_at(now))
    return {"as_of": as_of, "connection": told.state.value} | behind


def next_page_url(request: ClusterRequest, *, number: int, limit: int, total: int) -> str | None:
    """The URL of the next page of a list; None on the last page."""
    if number * limit >= total:
        return None
    query = request.GET.copy()
    query["page"] = str(number + 1)
    return request.build_absolute_uri(f"{request.path}?{query.urlencode()}")


def stream(
    request: ClusterRequest,
    lines: Iterator[str],
    *,
    content_type: str,
    filename: str,
    permission: str = VIEW,
) -> StreamingHttpResponse:
    """Send lines while they are made; HEAD makes none. `permission` is what reading them takes.

    Through ASGI, Django would first collect a plain iterator in memory: hence the async one.
    """
    if request.method == "HEAD":
        lines = iter(())
    else:
        _record_export(request)
        # A database that does not answer is said by the status: the head, and a first row.
        lines = chain(list(islice(lines, 2)), lines)
    by_asgi = isinstance(request, ASGIRequest)
    parts: Iterator[str] | AsyncIterator[str] = lines
    if by_asgi:
        parts = _parts(request, lines, filename, permission)
    response = StreamingHttpResponse(parts, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response


def _record_export(request: HttpRequest) -> None:
    token = getattr(request, "api_token", None)
    by = f" by the API token {token.name}" if token else ""
    record_by(request, SecurityEvent.EXPORT, request.get_full_path() + by)


async def _parts(
    request: ClusterRequest, lines: Iterator[str], filename: str, permission: str
) -> AsyncIterator[str]:
    """Join lines to parts, each made in the thread of the database.

    A long answer breaks off when the right to read ends. The connection breaks too, so nobody takes
    the part for the whole.
    """
    rights = running_board().rights
    ended: list[str] = []
    grant = rights.add(right_of_user(request.user, request.session), ended.append)

    def next_part() -> str:
        part = "".join(islice(lines, LINES_AT_ONCE))
        if part and permission != VIEW and not still_may(request.user, permission):
            ended.append(ROLE_TAKEN)
        return part

    try:
        while part := await sync_to_async(next_part)():
            if ended:
                logger.warning("%s was cut while it was sent: %s", filename, ended[0])
                raise asyncio.CancelledError  # as Django ends an answer that nobody reads
            yield part
    finally:
        rights.remove(grant)
