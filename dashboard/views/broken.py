"""What a person sees when a request broke: the page is drawn without asking the database, which
may be what broke."""

from __future__ import annotations

import sys

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from dashboard.context import THEMES

OURS = "Something broke on our side"
LOOK = (
    "The server's log says what happened. Reload the page; if it breaks again, tell whoever runs "
    "Leaseboard."
)
REFUSED = "The database refuses"


def broken(request: HttpRequest) -> HttpResponse:
    """503 where the database refused, as on a full or read-only disk; else 500."""
    error = sys.exc_info()[1]
    refused = isinstance(error, DatabaseError)
    title, text = OURS, LOOK
    if refused:
        title = REFUSED
        text = (
            f"It says: {error}. Make room on the disk or repair the database, and try again; then "
            "look whether what you did is there."
        )
    theme = request.COOKIES.get("theme", "")
    context = {"title": title, "text": text, "theme": theme if theme in THEMES else ""}
    return HttpResponse(render_to_string("500.html", context), status=503 if refused else 500)
