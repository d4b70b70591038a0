"""The ASGI application: pages, static files, sockets and the lifespan."""

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
from django.utils import timezone
from servestatic import ServeStaticASGI

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
django.setup(set_prefix=False)


# These need Django's apps.
from dashboard.access.redaction import redact_loggers  # noqa: E402
from dashboard.access.sign_in.client_address import client_address  # noqa: E402
from dashboard.access.sign_in.slowed_addresses import SLOWED  # noqa: E402
from dashboard.live.origin import own_sites_only, told_of_database  # noqa: E402
from dashboard.live.routing import urlpatterns  # noqa: E402
from dashboard.serving.lifespan import lifespan  # noqa: E402
from dashboard.serving.requests.busy import BUSY, SIGN_IN_BUSY, answer_busy, answer_slowed  # noqa: E402
from dashboard.serving.requests.request_threads import TooBusy  # noqa: E402
from dashboard.serving.requests.thread_choice import ThreadChoice, is_sign_in  # noqa: E402


class Pages(ASGIHandler):
    """Django that handles a whole request in one thread of a bounded number.

    In async mode each middleware would switch to a thread and back, twice.
    """

    def __init__(self) -> None:
        super().__init__()
        self.threads = ThreadChoice()

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        client = client_address((scope.get("client") or ("",))[0])
        threads = self.threads.of(scope)
        if threads is self.threads.sign_in:
            remaining = SLOWED.remaining(client, timezone.now())
            if remaining is not None:
                await answer_slowed(send, remaining)
                return
        try:
            async with threads.one(client or ""):
                await super().__call__(scope, receive, send)
        except TooBusy:
            await answer_busy(send, SIGN_IN_BUSY if is_sign_in(scope) else BUSY)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response, thread_sensitive=True)(request)


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
