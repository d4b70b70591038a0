"""The state of each cluster's watch in the menu of every page: drawn once for all pages, when it
changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.template.loader import render_to_string

from dashboard.parts.kept.watched_cluster import count_leases
from leases.tracking.store import Store

Html = Mapping[str, str]  # by name of the cluster


class ClusterMenu:
    """The states as last drawn; `drawn` is another mapping when one of them differs."""

    def __init__(self, stores: Mapping[str, Store]) -> None:
        self._stores = stores
        self._stamps: dict[str, object] = {}
        self.drawn: Html = {}

    def look(self, now: datetime) -> None:
        """Draw what changed since the last look."""
        fresh: dict[str, str] = {}
        for name, store in self._stores.items():
            connection, leases = store.connection, count_leases(store)
            stamp = (connection.state, connection.since, leases, now.date())
            if self._stamps.get(name) != stamp:
                self._stamps[name] = stamp
                context = {"name": name, "connection": connection, "leases": leases, "now": now}
                # An exact str: the encoder of frames refuses subclasses.
                fresh[name] = str.__str__(render_to_string("_cluster_state.html", context))
        if fresh:
            self.drawn = {**self.drawn, **fresh}


class MenuReader:
    """The menu of one page: what of it the page was not sent yet."""

    def __init__(self, menu: ClusterMenu) -> None:
        self._menu = menu
        self._sent: Html = {}
        self.wanted = False

    def news(self) -> Html:
        """The states that differ from those sent."""
        drawn, sent = self._menu.drawn, self._sent
        if not self.wanted or drawn is sent:
            return {}
        self._sent = drawn
        return {name: html for name, html in drawn.items() if sent.get(name) != html}
