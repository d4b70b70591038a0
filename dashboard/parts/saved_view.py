"""A saved view: the page and filter that it names, whether they can be opened, and who sees it.

It names a page by its URL's name and a cluster, so that it outlives a change of paths.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from django.core.exceptions import SuspiciousOperation
from django.db.models import BooleanField, Case, Q, QuerySet, When
from django.db.models.functions import Lower
from django.http import QueryDict
from django.urls import NoReverseMatch, Resolver404, resolve, reverse

from dashboard.access.roles import VIEW
from dashboard.board import running_board
from dashboard.lists.declaration import List
from dashboard.lists.url_parameters import FILTERS, BadFilter, for_input
from dashboard.parts.formatting import shortened
from dashboard.parts.names import cluster_path
from dashboard.parts.page_links import all_clusters_url
from leases.history.database import AWAY, reach
from leases.models import Person, SavedView

MAX_ADDRESS = 4000
MAX_SHOWN = 120  # characters of a value
TITLES = {
    "home": "All clusters",
    "stretch": "Leases ranked by what happened",
    "audit": "Audit trail",
    "wall": "Wall display",
}
UNSAVED = {"saved_views", "search", "search_all"}
LEFT_OUT = {"page", "before", "format"}  # a place in a list, and another answer
# What a list of Leases leaves out that its wall would show, and what a wall does not read.
NOT_ON_WALLS, NOT_OF_WALLS = {"at", "holder", "labels"}, {"sort", "range", "limit"}
T = TypeVar("T")


class NotSaved(ValueError):
    """Why an address cannot be saved, in a sentence."""


def title_of(page: str) -> str:
    """Pages whose name ends with `_all` are of all clusters."""
    name = page.removesuffix("_all")
    title = TITLES.get(name) or name.replace("_", " ").capitalize()
    return title if name == page else f"{title} of all clusters"


def is_saved(page: str | None) -> bool:
    """Whether the page of this URL has a filter that can be saved."""
    return page in FILTERS and page not in UNSAVED


def read_address(address: str, *, host: str, user: Any, now: datetime) -> SavedView:
    """The view of a page's address, without name and owner. Raises NotSaved."""
    try:
        parts = urlsplit(address.strip())
        query = QueryDict(parts.query, mutable=True)
    except (ValueError, SuspiciousOperation) as error:
        raise NotSaved("This address cannot be read. Copy that of a page of this board.") from error
    if parts.scheme not in ("", "http", "https") or parts.netloc not in ("", host):
        raise NotSaved("This is the address of another site. Copy that of a page of this board.")
    try:
        found = resolve(unquote(parts.path))
    except Resolver404 as error:
        raise NotSaved("No page of this board has this address.") from error
    page = found.view_name
    if not is_saved(page) or found.kwargs.keys() - {"cluster"}:
        raise NotSaved("This page has no filter to save.")
    view = SavedView(page=page, cluster=found.kwargs.get("cluster", ""), query=parts.query)
    kept = _read_by(page, query, now) - LEFT_OUT
    pairs = [(name, value) for name in query if name in kept for value in query.getlist(name)]
    view.query = urlencode([(name, value) for name, value in pairs if value])
    if problem := problem_of(view, user, now):
        raise NotSaved(problem)
    return view


def problem_of(view: SavedView, user: Any, now: datetime) -> str:
    """Why this person cannot open it now, in a sentence, or ""."""
    try:
        page_url(view)
    except NoReverseMatch:
        return f"Leaseboard has no page {view.page!r} any more."
    if not is_saved(view.page):
        return f"The page {title_of(view.page)!r} has no filter any more."
    if view.cluster and view.cluster not in running_board().clusters:
        return f"Leaseboard does not watch a cluster {view.cluster!r}."
    listed = List.declared.get(view.page)
    if not user.has_perm(listed.permission if listed else VIEW):
        return "You may not read this page. Ask an admin."
    query = QueryDict(view.query, mutable=True)
    try:
        FILTERS[view.page].read(query, now)
    except BadFilter as refused:
        return f"Its filter cannot be used: {refused.said}"
    known = _read_by(view.page, query, now)
    unread = next((name for name in query if name not in known), None)
    return f"The page does not read {unread!r} any more." if unread is not None else ""


def _read_by(page: str, query: QueryDict, now: datetime) -> set[str]:
    """The parameters that the page reads; some depend on the clusters that are watched."""
    reads = FILTERS[page]
    names = {one.name for one in reads.PARAMETERS.values()}
    try:
        return names | {name for name, _ in reads.read(query, now).pairs()}
    except BadFilter:
        return names


def page_url(view: SavedView) -> str:
    """Raises NoReverseMatch for a page that is gone."""
    path = reverse(view.page, args=[view.cluster] if view.cluster else [])
    if view.page == "home" and not view.query:
        return all_clusters_url()
    return f"{path}?{view.query}" if view.query else path


def wall_url(view: SavedView) -> str:
    """The wall with the filter of a list of Leases; "" if a wall does not have such a filter."""
    query = QueryDict(view.query, mutable=True)
    if view.page != "leases" or NOT_ON_WALLS & query.keys():
        return ""
    for name in NOT_OF_WALLS:
        query.pop(name, None)
    path = cluster_path("wall", view.cluster)
    return f"{path}?{query.urlencode()}" if query else path


def words_of(view: SavedView) -> list[str]:
    """Its filter, a parameter and its value each."""
    pairs = parse_qsl(view.query)
    return [f"{name}: {shortened(for_input(value), MAX_SHOWN)}" for name, value in pairs]


def says(view: SavedView) -> str:
    """The page and its filter: `Leases of prod, phase: expired`."""
    of = f" of {view.cluster}" if view.cluster else ""
    return ", ".join((f"{title_of(view.page)}{of}", *words_of(view)))


def visible_to(user: Any) -> QuerySet[SavedView]:
    """The own ones first, then those that others share."""
    is_own = Case(When(owner=user.pk, then=True), default=False, output_field=BooleanField())
    found = SavedView.objects.filter(Q(owner=user.pk) | Q(shared=True)).select_related("owner")
    return found.order_by(is_own.desc(), Lower("name"), "pk")


def views_called(user: Any, words: Iterable[str], most: int) -> list[SavedView]:
    """Some of those that have all words in their name; none while the database does not answer."""
    wanted = visible_to(user)
    for word in words:
        wanted = wanted.filter(name__icontains=word)
    return unless_away(lambda: list(wanted[:most]), [])


def start_of(user: Any) -> SavedView | None:
    """What the person starts with; nothing while the database does not answer."""
    chosen = Person.objects.filter(user=user.pk).values("start")
    return unless_away(lambda: visible_to(user).filter(pk__in=chosen).first(), None)


def unless_away(read: Callable[[], T], otherwise: T) -> T:
    """What it reads, or something else while the database does not answer."""
    if reach.error:
        return otherwise
    try:
        return read()
    except AWAY as error:
        reach.failed(error)
        return otherwise
