"""The bearer token of `LEASEBOARD_METRICS_TOKEN`: for Prometheus, and for the details of
`/readyz`."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare


def is_token_set() -> bool:
    return bool(settings.LEASEBOARD.metrics_token)


def sends_token(request: HttpRequest) -> bool:
    """Whether the request bears the token. Without a token in the settings nobody does."""
    given = request.headers.get("Authorization", "")
    wanted = f"Bearer {settings.LEASEBOARD.metrics_token}"
    return is_token_set() and constant_time_compare(given, wanted)
