"""`/wall/`: where a screen types its code, and which wall it shows then."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from dashboard import clock
from dashboard.access import screens
from dashboard.access.links import WallLinkClosed
from dashboard.access.security_log import SecurityEvent, address_of, full_address, record
from dashboard.access.sign_in_limits import TooManyCodes, try_code
from dashboard.board import running_board
from dashboard.forms.make_and_revoke import reads_and_writes
from dashboard.parts.wall_turns import next_cluster

WRONG = (
    "This code opens nothing: it is mistyped, was used, or has run out. A code works once, for "
    "10 minutes."
)
UNWATCHED = "Leaseboard watches no cluster of this screen's wall link any more. Ask an admin."


@never_cache
@reads_and_writes
def screen(request: HttpRequest) -> HttpResponseBase:
    """Lead a screen to the wall whose turn it is, and ask any other browser for a code."""
    if request.method == "POST":
        return _redeem(request)
    token = request.COOKIES.get(screens.COOKIE)
    if token is None:
        return _ask(request)
    try:
        link = screens.open_screen(token).link
    except WallLinkClosed as error:
        return _ask(request, 403, closed=str(error))
    if link.fleet:
        return _lead(token, screens.path_of("", link))
    feeds = running_board().feeds
    its_own = [feeds[one] for one in link.clusters if one in feeds]
    cluster = next_cluster(its_own, request.GET.get("after", ""), clock.now())
    if cluster is None:
        return _ask(request, 403, closed=UNWATCHED)
    return _lead(token, screens.path_of(cluster, link))


def _lead(token: str, wall: str) -> HttpResponse:
    answer = redirect(wall)
    screens.keep_cookie(answer, token)
    return answer


def _ask(request: HttpRequest, status: int = 200, **said: Any) -> HttpResponse:
    return render(request, "wall/code.html", said, status=status)


def _redeem(request: HttpRequest) -> HttpResponse:
    typed = request.POST.get("code", "")[:100]
    try:
        address = full_address(request.META.get("REMOTE_ADDR"))
        redeemed = try_code(
            address_of(request), lambda: screens.redeem(typed, clock.now(), address)
        )
    except TooManyCodes as error:
        answer = _ask(request, 429, slowed=str(error))
        answer["Retry-After"] = str(error.seconds)
        return answer
    if redeemed is None:
        _record(request, SecurityEvent.SCREEN_REFUSED, outcome="wrong code")
        return _ask(request, 422, wrong=WRONG)
    link, token = redeemed
    _record(request, SecurityEvent.SCREEN_OPENED, about=f"wall link {link.name}")
    return _lead(token, reverse("screen"))


def _record(request: HttpRequest, event: SecurityEvent, **said: str) -> None:
    address = full_address(request.META.get("REMOTE_ADDR"))
    record(event, who="a screen", address=address, **said)
