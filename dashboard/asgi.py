"""The ASGI application: pages, static files, sockets and the runtime's life."""

from __future__ import annotations

import os
from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.asgi import get_asgi_application
from servestatic import ServeStaticASGI

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
pages = get_asgi_application()

# Django's apps must be ready before these.
from dashboard.lifespan import lifespan  # noqa: E402
from dashboard.live.routing import urlpatterns  # noqa: E402

HASHED = r"^.+\.[0-9a-f]{12}\..+$"


def application_of(static_root: Any) -> ProtocolTypeRouter:
    """Everything behind one port."""
    return ProtocolTypeRouter(
        {
            "http": ServeStaticASGI(
                pages, root=static_root, prefix="static", immutable_file_test=HASHED
            ),
            "websocket": AuthMiddlewareStack(URLRouter(urlpatterns)),
            "lifespan": lifespan,
        }
    )


settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
application = application_of(settings.STATIC_ROOT)
