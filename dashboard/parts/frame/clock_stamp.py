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
UNSETTLED = -1  # fits no page


class ClockStamp:
    """The page places a part only if the clock jumped as often as the page knows.

    A part that was drawn while the clock was set may hold moments of both clocks.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        clock = running_board().clock
        before = _number(clock.followed)
        request.clock_jumps = before  # type: ignore[attr-defined]
        response = self._get_response(request)
        if REGIONS in request.headers:
            drawn_by_one = before == _number(clock.followed)
            response.headers[HEADER] = str(before if drawn_by_one else UNSETTLED)
        if "HX-Request" in request.headers and hasattr(request, "drawn"):
            response.headers[DRAWN] = request.drawn
        return response


def _number(followed: int | None) -> int:
    return UNSETTLED if followed is None else followed
