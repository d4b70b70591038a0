"""Tells a page from what a part of it was drawn: the last move of the cluster, and how often the
server's clock had jumped.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from dashboard.board import running_board
from dashboard.parts.frame.responses import REGIONS

HEADER = "X-Clock-Jumps"
DRAWN = "X-Drawn"


class ClockStamp:
    """The page places a part only if the clock jumped as often as the page knows.

    A part that was drawn while the clock was set may hold moments of both clocks: -1 fits no page.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        before = running_board().clock.jumps
        request.clock_jumps = before  # type: ignore[attr-defined]
        response = self._get_response(request)
        if REGIONS in request.headers:
            jumps = running_board().clock.jumps
            response.headers[HEADER] = str(jumps if jumps == before else -1)
        if "HX-Request" in request.headers and hasattr(request, "drawn"):
            response.headers[DRAWN] = request.drawn
        return response
