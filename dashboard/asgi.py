"""The ASGI application: pages, static files, sockets and the lifespan."""

from __future__ import annotations

import os
from typing import Any

import django
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import CookieMiddleware, SessionMiddleware
from django.conf import settings
from servestatic import ServeStaticASGI

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
django.setup(set_prefix=False)


# These need Django's apps.
from dashboard.live.consumers import urlpatterns  # noqa: E402
from dashboard.live.socket_guards import (  # noqa: E402
    closed_without_database,
    own_sites_only,
    signed_in,
    signed_in_by_proxy,
)
from dashboard.log_lines import redact_loggers  # noqa: E402
from dashboard.serving.request_threads import OneThreadPages  # noqa: E402
from dashboard.serving.runtime import lifespan  # noqa: E402

HASHED = r"^.+\.[0-9a-f]{12}\..+$"


def application_of(static_root: Any) -> ProtocolTypeRouter:
    """Everything behind one port."""
    people: Any = signed_in(signed_in_by_proxy(URLRouter(urlpatterns)))
    sockets: Any = CookieMiddleware(SessionMiddleware(people))
    return ProtocolTypeRouter(
        {
            "http": ServeStaticASGI(
                OneThreadPages(), root=static_root, prefix="static", immutable_file_test=HASHED
            ),
            "websocket": own_sites_only(closed_without_database(sockets)),
            "lifespan": lifespan,
        }
    )


redact_loggers("uvicorn.access", "uvicorn.error")
settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
application = application_of(settings.STATIC_ROOT)
