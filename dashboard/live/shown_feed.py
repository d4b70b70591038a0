"""The changes that one page lacks, in the form that it asked for."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dashboard.live.hub_view import HubView
from dashboard.live.messages import Show
from dashboard.parts.frame import live_html


class ShownFeed:
    """`number` is that of the last change that the page has; None: it shows none."""

    def __init__(self, hub: HubView) -> None:
        self._hub = hub
        self._form = "line"
        self.number: int | None = None

    def show(self, wanted: Show) -> bool:
        """Go on from the page's number. Returns whether the page must fetch everything instead."""
        before, self.number, self._form = self.number, wanted.feed, wanted.feed_as
        if self.number is None:
            return False
        if wanted.drawn is not None and not self._hub.is_own(self.number):
            # Another process counted: go by the moment. The page knows lines by their identity,
            # but it cannot tell counted changes apart.
            self.number = self._hub.moves.seq_at(wanted.drawn, self._hub.seq)
            if self._form == "number" and before is not None:
                self.number = max(self.number, before)
            return False
        if self._hub.is_outdated(self.number):
            self.number = self._hub.seq
            return True
        return False

    def news(self, now: datetime) -> tuple[dict[str, Any], bool]:
        """What a frame says of the feed, and whether the page may lack more than that."""
        if self.number is None:
            return {}, False
        fresh = [(seq, change) for seq, change in self._hub.recent if seq > self.number]
        lacks_more = len(fresh) == self._hub.recent.maxlen
        self.number = self._hub.seq
        if self._form == "number":
            return {"changes": len(fresh)}, lacks_more
        form = live_html.CHANGES[self._form]
        lines = [live_html.render_change(change, form, now) for _, change in fresh]
        return {"feed": lines}, lacks_more

    def explained(self, turn: int, now: datetime) -> list[str]:
        """The changes again whose cause became known after that turn of incidents."""
        form = live_html.CHANGES.get(self._form)
        if self.number is None or form is None:
            return []
        fresh = [change for at, change in self._hub.explained if at > turn]
        return [live_html.render_change(change, form, now) for change in fresh]
