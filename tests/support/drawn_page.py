"""A page without a browser: reads from its HTML what it asks its socket for, as static/js does."""

from __future__ import annotations

import re
from typing import Any

from dashboard.live.messages import Show

PARTS = {"row": "data-key", "tile": "data-tile", "lease": "data-lease", "now": "data-now"}


def show_of(html: str, query: str | None = None) -> Show:
    """As `show` in static/js/live.js; `query` is that of the URL."""
    feed = re.search(r'<[^>]* data-feed="(\d+)"[^>]*>', html)
    wanted: dict[str, Any] = {}
    if feed is not None:
        form = re.search(r'data-feed-as="(\w+)"', feed[0])
        wanted = {"feed": int(feed[1]), "feed_as": form[1] if form else "line"}
    groups = re.search(r'data-groups="([^"]+)"', html)
    drawn = re.search(r'data-drawn="([^"]+)"', html)
    field = re.search(r'data-field="(\w+)"', html)
    return Show(
        show={
            part: re.findall(rf'{attribute}="([^"]+/[^"]+)"', html)
            for part, attribute in PARTS.items()
        },
        groups=groups[1].split() if groups else [],
        query=(query or "") if "data-elsewhere" in html else None,
        field=field[1] if field else None,  # type: ignore[arg-type]  # as the page has it
        drawn=drawn[1] if drawn else None,
        **wanted,
    )


def fetched(html: str, frame: dict[str, Any]) -> set[str]:
    """The ids of the parts that a frame makes the page fetch, as `apply` in static/js/live.js."""
    causes = {
        "changed": bool(frame.get("feed")) and "data-feed-limit" not in html,
        "moving": bool(frame.get("numbers")),
        "renewed": "renewed" in frame or "lease" in frame.get("html", {}),
        "gone": "gone" in frame,
        "counts": "counts" in frame,
        "recount": "recount" in frame,
        "incidents": "incidents" in frame,
    }
    told = {cause for cause, is_told in causes.items() if is_told}
    found = set()
    for tag in re.findall(r"<[^>]* data-region=[^>]*>", html):
        region = re.search(r'data-region="([^"]*)"', tag)
        name = re.search(r' id="([^"]+)"', tag)
        assert region is not None, tag
        assert name is not None, tag
        if "refetch" in frame or told.intersection(region[1].split()):
            found.add(name[1])
    return found
