"""The menu of clusters: links to the same page of each, with the state of its watch.

A state is drawn once for pages and sockets until it differs. One tag draws all links, because
there may be hundreds on every page.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from html import escape
from urllib.parse import quote

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from dashboard.parts.names import cluster_path
from dashboard.watched_cluster import WatchedCluster
from leases.domain.watched_times import Connection, ConnectionState
from leases.tracking.store import Store

NOON = timedelta(hours=12)


def cluster_links(
    clusters: Iterable[WatchedCluster], current: WatchedCluster | None, here: str, now: datetime
) -> SafeString:
    """`here` is the address of the page that is open, of the cluster `current` if of any."""
    came_from, marks = quote(here, safe=""), {True: ' aria-current="true"', False: ""}
    links = [
        f'<a href="{_address(one.name)}?from={came_from}" data-switch{marks[one is current]}>'
        f'<span class="name">{escape(one.name)}</span> {menu_state(one.store, now)}</a>\n'
        for one in clusters
    ]
    return mark_safe("".join(links))  # noqa: S308 - every text in it is escaped


@lru_cache(maxsize=4096)
def _address(cluster: str) -> str:
    return cluster_path("switch_cluster", cluster)


def menu_state(store: Store, now: datetime) -> SafeString:
    """Of a moment only the date counts: the text has no age."""
    told = store.connection.shown(now)
    shows = (told.state, told.since, store.size(), now.date())
    known = _drawn.get(store.cluster)
    if known is None or known[0] != shows:
        known = _drawn[store.cluster] = (shows, _draw(store.cluster, *shows))
    return known[1]


_Shows = tuple[ConnectionState, datetime, int, date]
_drawn: dict[str, tuple[_Shows, SafeString]] = {}  # the last of each cluster


def _draw(
    name: str, state: ConnectionState, since: datetime, leases: int, today: date
) -> SafeString:
    now = datetime.combine(today, datetime.min.time(), UTC) + NOON
    connection = Connection(state=state, since=since)
    context = {"name": name, "connection": connection, "leases": leases, "now": now}
    return mark_safe(render_to_string("_cluster_state.html", context))  # noqa: S308 - a template's
