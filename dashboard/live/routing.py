"""The paths of the sockets."""

from __future__ import annotations

from django.urls import path, re_path

from dashboard.live.consumers import ChangesConsumer, PageConsumer, UnknownConsumer

urlpatterns = [
    path("c/<slug:cluster>/live/page/", PageConsumer.as_asgi()),
    path("c/<slug:cluster>/live/changes/", ChangesConsumer.as_asgi()),
    re_path(r"", UnknownConsumer.as_asgi()),
]
