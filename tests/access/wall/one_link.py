"""A wall link, and what it opens."""

from __future__ import annotations

from django.test import Client
from django.utils import timezone

from dashboard.access import links
from leases.models import WallLink


def link(name: str = "lobby", *clusters: str, **more: object) -> tuple[WallLink, str]:
    return links.create(
        name=name, clusters=clusters or ("a",), created_by="ada", now=timezone.now(), **more
    )


def opened(token: str, cluster: str = "a") -> tuple[int, str]:
    answer = Client().get(f"/c/{cluster}/wall/", {"key": token})
    return answer.status_code, answer.content.decode()
