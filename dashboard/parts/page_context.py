"""The context of every page, and the stamp of what its parts were drawn from."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.template import RequestContext
from django.template.backends.django import DjangoTemplates, Template
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from dashboard import clock
from dashboard.access.guards import REGIONS
from dashboard.access.links import PARAMETER
from dashboard.access.roles import role_of
from dashboard.access.screens import PARAMETER as SCREEN
from dashboard.board import running_board
from dashboard.config import VERSION
from dashboard.lists.typed_times import COOKIE, UTC_ZONE, answer_in, is_zone, zone_of_typed
from dashboard.parts.fleet_row import FLEET_LIVE_URL
from dashboard.parts.names import cluster_path
from dashboard.parts.page_links import all_clusters_url
from dashboard.parts.saved_view import unless_away
from dashboard.watched_cluster import WatchedCluster
from leases.domain.watched_times import Connection, ConnectionState
from leases.models import Person

NEWS_URL = f"{FLEET_LIVE_URL}?news=1"
THEMES = ("light", "dark")
MAX_LINK = 4000  # characters that a link repeats of the page's own URL


class PageTemplates(DjangoTemplates):
    """Django's templates, which let go of all that they drew a page from."""

    def get_template(self, template_name: str) -> "PageTemplate":
        return PageTemplate(super().get_template(template_name).template, self)


class PageTemplate(Template):
    """A RequestContext holds itself. Django leaves it to the collector of garbage, and with it each
    row that a page shows: some hundred kilobytes for each page.
    """

    def render(self, context: Any = None, request: HttpRequest | None = None) -> str:
        if request is None:
            return super().render(context)
        drawn_from = RequestContext(request)
        with drawn_from.push(context or {}):
            html = self.template.render(drawn_from)
        drawn_from.pop()  # the room that it made for more: it holds the context, too
        return html


def page(request: HttpRequest) -> dict[str, Any]:
    """Context processor for `templates/base.html`."""
    theme = request.COOKIES.get("theme", "")
    cluster = getattr(request, "cluster", None)
    # Asked only by a template that needs it: who opens a wall by its link may have a session that
    # nobody knows while the database is away.
    role = SimpleLazyObject(partial(_role, request))
    by_person = getattr(request, "link", None) is None
    here = request.get_full_path()
    context: dict[str, Any] = {
        "clusters": SimpleLazyObject(partial(_clusters, role)),
        "nav": _nav(cluster.name if cluster else "") if running_board().clusters else {},
        "everywhere_url": _everywhere_url(request),
        "search_url": _search_url(cluster.name if cluster else ""),
        "cluster": cluster,
        "may_edit": SimpleLazyObject(
            lambda: role == "admin" and not (cluster is not None and cluster.read_only)
        ),
        "role": role,
        "theme": theme if theme in THEMES else "",
        "clock_jumps": getattr(request, "clock_jumps", 0),
        "drawn": getattr(request, "drawn", ""),
        "zone": getattr(request, "zone", UTC_ZONE),
        "server_time": clock.now(),
        "here": here if len(here) < MAX_LINK else request.path,
        "version": VERSION,
        # Its sentences name clusters, so strangers do not see them.
        "history_problem": (
            running_board().problem(cluster.name if cluster else None)
            if cluster is not None or (by_person and role != "guest")
            else None
        ),
    }
    if getattr(request, "spans", False):
        live = Connection(state=ConnectionState.LIVE, since=context["server_time"])
        context |= {"connection": live, "as_of": context["server_time"], "live_url": NEWS_URL}
    if cluster is not None:
        context["as_of"] = cluster.as_of(context["server_time"])
        # A wall's socket draws by the filter of the wall.
        of_wall = PARAMETER in request.GET or SCREEN in request.GET
        query = f"?{request.GET.urlencode()}" if of_wall else ""
        context["live_url"] = f"/c/{cluster.name}/live/page/{query}"
        context["wall_url"] = cluster_path("wall", cluster.name)
    return context


def _role(request: HttpRequest) -> str:
    user = getattr(request, "user", None)
    return role_of(user) if user is not None else "guest"


def _clusters(role: object) -> list[WatchedCluster]:
    return list(running_board().clusters.values()) if role != "guest" else []


def zone_of(request: HttpRequest) -> str:
    """The zone in which the page shows its times: of the wall link that opened it, or the person's.
    `static/js/zone.js` knows it also while the database does not answer.
    """
    user, link = getattr(request, "user", None), getattr(request, "link", None)
    if link is not None:
        return str(link.zone)
    if user is None or not user.is_authenticated:
        return UTC_ZONE
    chosen = Person.objects.filter(user=user.pk).values_list("zone", flat=True)
    found = unless_away(chosen.first, request.COOKIES.get(COOKIE)) or UTC_ZONE
    return found if is_zone(found) else UTC_ZONE


# Pages of one cluster that are there for all of them too.
EVERYWHERE = ("timeline", "history", "incidents")


def _nav(cluster: str) -> dict[str, str]:
    """The pages of the cluster, else of the only one, else of all clusters."""
    names = list(running_board().clusters)
    name = cluster or (names[0] if len(names) == 1 else "")
    return {
        page: reverse(page, args=[name]) if name else reverse(f"{page}_all") for page in EVERYWHERE
    }


def _everywhere_url(request: HttpRequest) -> str:
    """The open page over all clusters, or the page of all clusters."""
    found = request.resolver_match
    page = found.url_name if found is not None else ""
    return reverse(f"{page}_all") if page in EVERYWHERE else all_clusters_url()


def _search_url(cluster: str) -> str:
    """The search of the page's cluster, or of the only one, before that of all."""
    names = list(running_board().clusters)
    name = cluster or (names[0] if len(names) == 1 else "")
    return reverse("search", args=[name]) if name else reverse("search_all")


HEADER = "X-Clock-Jumps"
DRAWN = "X-Drawn"
UNSETTLED = -1  # fits no page


class ClockStamp:
    """The page places a part only if the clock jumped as often as the page knows. Typed times are
    read in the person's zone.

    A part that was drawn while the clock was set may hold moments of both clocks.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        clock = running_board().clock
        before = _number(clock.followed)
        request.clock_jumps = before  # type: ignore[attr-defined]
        request.zone = SimpleLazyObject(partial(zone_of, request))  # type: ignore[attr-defined]
        zone = zone_of_typed(request)
        if zone:
            response = answer_in(zone, request, self._get_response)
        else:
            response = self._get_response(request)  # no frame more: see answer_in
        if REGIONS in request.headers:
            drawn_by_one = before == _number(clock.followed)
            response.headers[HEADER] = str(before if drawn_by_one else UNSETTLED)
        if "HX-Request" in request.headers and hasattr(request, "drawn"):
            response.headers[DRAWN] = request.drawn
        return response


def _number(followed: int | None) -> int:
    return UNSETTLED if followed is None else followed
