"""One badge, as SVG or JSON. Whoever knows its address may read it, and nothing else."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.tokens import digest_of
from dashboard.board import running_board
from dashboard.pages.badges.state import BadgeState, badge_state
from dashboard.parts.frame import responses
from leases.models import Badge
from leases.wire.microtime import microtime_or_none

MAX_AGE = 15  # seconds for which others may keep it
LETTER, MARGIN = 6.2, 12  # pixels: of a letter at 11 px, and around a text


@require_safe
def badge_svg(request: HttpRequest, token: str) -> HttpResponse:
    shown = _find(token)
    label, message = (round(len(one) * LETTER) for one in (shown.label, shown.message))
    left = label + MARGIN
    context = {
        "badge": shown,
        "left": left,
        "width": left + message + MARGIN,
        "right": message + MARGIN,
        "label_length": label,
        "message_length": message,
        "message_at": left + MARGIN / 2,
        "label_at": MARGIN / 2,
    }
    answer = render(request, "badges/badge.svg", context, content_type="image/svg+xml")
    return _for_a_moment(answer)


@require_safe
def badge_json(_request: HttpRequest, token: str) -> HttpResponse:
    """The first four fields are the endpoint schema of shields.io."""
    shown = _find(token)
    return _for_a_moment(
        responses.json(
            {
                "schemaVersion": 1,
                "label": shown.label,
                "message": shown.message,
                "color": shown.colour,
                "state": shown.state,
                "counts": shown.counts,
                "as_of": microtime_or_none(shown.as_of),
                "stale": shown.stale,
            }
        )
    )


def _find(token: str) -> BadgeState:
    badge = Badge.objects.filter(digest=digest_of(token), revoked_at=None).first()
    if badge is None:
        raise Http404("There is no such badge, or it was revoked. Ask an admin for a new one.")
    return badge_state(badge, running_board().clusters.get(badge.cluster), clock.now())


def _for_a_moment(answer: HttpResponse) -> HttpResponse:
    answer["Cache-Control"] = f"max-age={MAX_AGE}"
    return answer
