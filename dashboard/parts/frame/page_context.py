"""The context of every page: the clusters, the user's role, and the live socket's URL."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from dashboard import clock
from dashboard.access.roles import role_of
from dashboard.access.wall.links import PARAMETER
from dashboard.board import running_board
from dashboard.configuration.version import VERSION

THEMES = ("light", "dark")
MAX_LINK = 4000  # characters that a link repeats of the page's own URL


def page(request: HttpRequest) -> dict[str, Any]:
    """Context processor for `templates/base.html`."""
    theme = request.COOKIES.get("theme", "")
    cluster = getattr(request, "cluster", None)
    user = getattr(request, "user", None)
    role = role_of(user) if user is not None else "guest"
    here = request.get_full_path()
    context: dict[str, Any] = {
        "clusters": list(running_board().clusters.values()) if role != "guest" else [],
        "cluster": cluster,
        "may_edit": role == "admin" and not (cluster is not None and cluster.read_only),
        "role": role,
        "theme": theme if theme in THEMES else "",
        "clock_jumps": getattr(request, "clock_jumps", 0),
        "drawn": getattr(request, "drawn", ""),
        "server_time": clock.now(),
        "here": here if len(here) < MAX_LINK else request.path,
        "version": VERSION,
        # Its sentences name clusters, so strangers do not see them.
        "history_problem": (
            running_board().problem(cluster.name if cluster else None)
            if role != "guest" or cluster is not None
            else None
        ),
    }
    if cluster is not None:
        context["as_of"] = cluster.as_of(context["server_time"])
        key = request.GET.get(PARAMETER)
        query = "?" + urlencode({PARAMETER: key}) if key else ""
        context["live_url"] = f"/c/{cluster.name}/live/page/{query}"
        context["wall_url"] = reverse("wall", args=[cluster.name])
    return context
