"""The paths of the sockets."""

from __future__ import annotations

from typing import Any, cast

from django.urls import path, re_path

from dashboard.live.consumers import ChangesConsumer, PageConsumer, UnknownConsumer

# Django's types know views only; Channels routes applications by the same patterns.
urlpatterns: list[Any] = [
    path("c/<slug:cluster>/live/page/", cast("Any", PageConsumer.as_asgi())),
    path("c/<slug:cluster>/live/changes/", cast("Any", ChangesConsumer.as_asgi())),
    re_path(r"", cast("Any", UnknownConsumer.as_asgi())),
]
