"""Who may see and do what: the first line of every view. What is refused here is refused
everywhere."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, cast

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from dashboard.access import screens
from dashboard.access.api_tokens import NO_TOKEN, TokenPerson, challenge, is_program
from dashboard.access.drawing_gate import drawing_gate
from dashboard.access.links import PARAMETER, WallLinkClosed, open_link, right_of
from dashboard.access.roles import EDIT, VIEW
from dashboard.board import running_board

if TYPE_CHECKING:
    from dashboard.watched_cluster import WatchedCluster
    from leases.models import WallLink

P = ParamSpec("P")
User = AbstractBaseUser | AnonymousUser
REGIONS = "X-Regions"  # a header: the parts of the open page that a script fetches again


class NotText(BadRequest):
    """What was sent cannot be stored or shown; the text says what to send instead."""


class ReadableRequests:
    """Refuses, before anything reads it, a request that no page could read or answer: one with more
    parameters than are read, or with text in another encoding than UTF-8.

    Other encodings can spell half a surrogate pair, which nothing can store or show.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        charset = (request.content_params or {}).get("charset", "utf-8").strip().lower()
        if request.method == "POST" and charset not in ("utf-8", "utf8"):
            raise NotText("Its text is not in UTF-8. Send it in UTF-8.")
        _ = request.GET  # raises TooManyFieldsSent; the error pages would, too
        return self._get_response(request)


class ClusterRequest(HttpRequest):
    """A request about one cluster, once access has been granted."""

    htmx: HtmxDetails
    cluster: WatchedCluster
    drawn: str  # the stamp of what the view is about to read
    spans: bool  # whether its page shows several clusters and hears of them
    link: WallLink | None  # that opens this wall
    screen: WallLink | None  # whose screen shows this wall


View = Callable[Concatenate[ClusterRequest, str, P], HttpResponseBase]
Wrapped = Callable[..., HttpResponseBase]


def may_view(user: User) -> bool:
    return user.has_perm(VIEW)  # type: ignore[union-attr]


def may_edit(user: User) -> bool:
    return user.has_perm(EDIT)  # type: ignore[union-attr]


def find_cluster(name: str) -> WatchedCluster:
    """The cluster of this name, or 404 naming those that are watched. For those who may read."""
    clusters = running_board().clusters
    if name not in clusters:
        raise Http404(f"No cluster is called {name!r} here. Watched: {', '.join(clusters)}.")
    return clusters[name]


def _open_wall(request: HttpRequest, wall: str) -> HttpResponseBase | None:
    """Find the wall link that opens it, or else see that a person asks who may read. None: it is
    open. A screen that has lost its right is led to where it types a code.
    """
    about, key = cast("ClusterRequest", request), request.GET.get(PARAMETER)
    about.link = about.screen = None
    if key is not None:
        about.link = open_link(key, cluster=wall)
        running_board().link_use.note(right_of(about.link, wall))
    elif screens.PARAMETER in request.GET:
        try:
            screen = screens.open_screen(request.COOKIES.get(screens.COOKIE), wall)
        except WallLinkClosed:
            return redirect("screen")
        about.link = about.screen = screen.link
        running_board().link_use.note(right_of(screen.link, wall, screen.pk))
    else:
        return check_view(request)
    return None


def _wall_of(request: HttpRequest, name: str) -> WatchedCluster:
    """The cluster; else a sentence that names no other one to a wall link."""
    if cast("ClusterRequest", request).link is None:
        return find_cluster(name)
    running = running_board()
    if name not in running.clusters:
        raise Http404("Leaseboard does not watch this cluster any more. Ask an admin.")
    return running.clusters[name]


class NoRole(PermissionDenied):
    """The user is signed in but may not read."""


def check_view(request: HttpRequest) -> HttpResponseBase | None:
    """None when the user may read; for strangers a redirect to sign-in, or 401 for a program;
    else PermissionDenied.

    A page that fetches a part of itself goes to sign-in as a whole: in place of the part, htmx
    would show what it finds of the part on the page for signing in, which is nothing. A page with
    a socket stays, and says that it is not live.
    """
    if may_view(request.user):
        return None
    if request.user.is_authenticated:
        raise NoRole(f"{request.user} may not read Leases. Ask an admin for the role operator.")
    if is_program(request):
        return challenge(NO_TOKEN)
    there = cast("ClusterRequest", request).htmx.current_url_abs_path
    if there and REGIONS not in request.headers:
        return HttpResponseClientRedirect(redirect_to_login(there).url)
    return redirect_to_login(request.get_full_path())


def check_edit(user: User) -> None:
    """Raise PermissionDenied unless the user may edit Leases."""
    if not may_edit(user):
        raise PermissionDenied(f"{user} may not edit Leases. Ask an admin for the role admin.")


def check_writable(cluster: WatchedCluster) -> None:
    """Raise PermissionDenied if Leaseboard is set to only read this cluster."""
    if cluster.read_only:
        raise PermissionDenied(
            f"Leaseboard only reads {cluster.name}: LEASEBOARD_READ_ONLY is set. "
            "Nothing can be changed here."
        )


def check_editor(request: HttpRequest) -> HttpResponseBase | None:
    """As `check_view`, for a page that only those who may edit Leases may open."""
    refusal = check_view(request)
    if refusal is None:
        check_edit(request.user)
    return refusal


def right_required(
    permission: str, what: str
) -> Callable[[Callable[Concatenate[HttpRequest, P], HttpResponseBase]], Wrapped]:
    """For users with this permission; others are told `what` they may not do."""

    def guard(view: Callable[Concatenate[HttpRequest, P], HttpResponseBase]) -> Wrapped:
        @wraps(view)
        def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            refusal = check_view(request)
            if refusal is not None:
                return refusal
            if not request.user.has_perm(permission):
                raise PermissionDenied(f"{request.user} may not {what}. Ask an admin.")
            return view(request, *args, **kwargs)

        return guarded

    return guard


def person_required(what: str) -> Callable[[Wrapped], Wrapped]:
    """For people who may read; a program with a token is told `what` people do."""

    def guard(view: Wrapped) -> Wrapped:
        @wraps(view)
        def guarded(request: HttpRequest, **given: int) -> HttpResponseBase:
            refusal = check_view(request)
            if refusal is None and isinstance(request.user, TokenPerson):
                raise PermissionDenied(f"{what} are managed by people: sign in.")
            return refusal or view(request, **given)

        return guarded

    return guard


def _set_cluster(request: HttpRequest, watched: WatchedCluster) -> None:
    about = cast("ClusterRequest", request)
    about.cluster = watched
    about.drawn = running_board().feeds[watched.name].moves.stamp


def drawing(request: HttpRequest) -> AbstractContextManager[None]:
    """Hold the gate for a page. What its frame shows of the person is read before: were it read
    while the page is drawn, each thread's page would wait there with all that it had computed.
    """
    is_part = "HX-Request" in request.headers and REGIONS not in request.headers
    if not (is_part or "&format=" in f"&{request.META['QUERY_STRING']}"):
        str(getattr(request, "zone", ""))
    return drawing_gate.drawing(running_board().clusters.values())


def viewer_required(view: View[P]) -> Wrapped:
    """For users with the right to read; the view gets `request.cluster`."""

    @wraps(view)
    def guarded(
        request: HttpRequest, cluster: str, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        refusal = check_view(request)
        if refusal is not None:
            return refusal
        if "\0" in request.path:  # PostgreSQL would refuse to look for it
            raise Http404("No Lease has a NUL in its name.")
        _set_cluster(request, find_cluster(cluster))
        with drawing(request):
            return view(request, cluster, *args, **kwargs)  # type: ignore[arg-type]

    return guarded


def wall_required(view: View[P]) -> Wrapped:
    """For users with the right to read, and for anybody with a wall link that still opens."""

    @wraps(view)
    def guarded(
        request: HttpRequest, cluster: str, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        refusal = _open_wall(request, cluster)
        if refusal is not None:
            return refusal
        _set_cluster(request, _wall_of(request, cluster))
        with drawing(request):
            return view(request, cluster, *args, **kwargs)  # type: ignore[arg-type]

    return guarded


def fleet_wall_required(view: Callable[[ClusterRequest], HttpResponseBase]) -> Wrapped:
    """As `wall_required`, for the wall of several clusters."""

    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponseBase:
        refusal = _open_wall(request, "")
        if refusal is not None:
            return refusal
        with drawing(request):
            return view(cast("ClusterRequest", request))

    return guarded
