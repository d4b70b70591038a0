"""The ASGI application: pages, static files, sockets and the runtime's life."""

from __future__ import annotations

import os
from typing import Any

import django
from asgiref.sync import sync_to_async
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponseBase
from servestatic import ServeStaticASGI

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
django.setup(set_prefix=False)


class Pages(ASGIHandler):
    """Django with all of a request in one thread: in async mode each middleware would go to the
    thread and back, twice.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response, thread_sensitive=True)(request)


# Django's apps must be ready before these.
from dashboard.access.redaction import redact_loggers  # noqa: E402
from dashboard.lifespan import lifespan  # noqa: E402
from dashboard.live.origin import own_sites_only, told_of_database  # noqa: E402
from dashboard.live.routing import urlpatterns  # noqa: E402

HASHED = r"^.+\.[0-9a-f]{12}\..+$"


def application_of(static_root: Any) -> ProtocolTypeRouter:
    """Everything behind one port."""
    sockets: Any = AuthMiddlewareStack(URLRouter(urlpatterns))
    return ProtocolTypeRouter(
        {
            "http": ServeStaticASGI(
                Pages(), root=static_root, prefix="static", immutable_file_test=HASHED
            ),
            "websocket": own_sites_only(told_of_database(sockets)),
            "lifespan": lifespan,
        }
    )


redact_loggers("uvicorn.access", "uvicorn.error")
settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
application = application_of(settings.STATIC_ROOT)
