"""When each person was last seen. Requests note it in memory; `LinkUse` writes it once a minute."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponseBase

from leases.models import Person

SEEN: set[int] = set()  # ids of users since the last write


class LastSeen:
    """Middleware. Asks nothing of the database: a page that needs no user notes none."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self._get_response(request)
        user = request.user if hasattr(request, "by_proxy") else _looked_up(request)
        if user is not None and user.is_authenticated:
            SEEN.add(user.pk)
        return answer


def _looked_up(request: HttpRequest) -> User | None:
    return getattr(request, "_cached_user", None)


def write_seen(ids: Collection[int], now: datetime) -> None:
    """Write it for those accounts that there still are."""
    known = User.objects.filter(pk__in=ids)
    Person.objects.bulk_create(
        [Person(user=user, last_seen_at=now) for user in known],
        update_conflicts=True,
        unique_fields=["user"],
        update_fields=["last_seen_at"],
    )
