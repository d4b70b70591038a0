"""`/metrics`, for Prometheus."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from dashboard import clock
from dashboard.access.metrics_token import is_token_set, sends_token
from dashboard.board import running_board
from dashboard.config import Config
from dashboard.metrics.families import metrics as exposition


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """All metrics; 401 without the token if the settings have one."""
    config: Config = settings.LEASEBOARD
    api_token = getattr(request, "api_token", None)
    if is_token_set() and not sends_token(request) and api_token is None:
        return HttpResponse(
            "Send LEASEBOARD_METRICS_TOKEN as a bearer token.\n",
            status=401,
            headers={"WWW-Authenticate": "Bearer", "Content-Type": "text/plain"},
        )
    text = exposition(running_board(), elections=config.metrics_elections, now=clock.now())
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)
