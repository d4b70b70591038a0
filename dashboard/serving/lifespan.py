"""ASGI lifespan: the runtime starts before the first request and stops after the last."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from django.db import Error, connection

from dashboard.config import ConfigError
from dashboard.serving import runtime
from dashboard.serving.newer_database import NewerDatabase, check_not_newer
from dashboard.serving.requests.database_pool import bound_connections, close_connections
from leases.apiserver.start_refusal import CannotStart
from leases.process_lock import InUse

logger = logging.getLogger(__name__)

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


async def lifespan(_scope: Message, receive: Receive, send: Send) -> None:
    """Answer the server's two lifespan messages."""
    await receive()
    bound_connections()
    try:
        await asyncio.to_thread(check_database)
        running = await runtime.launch()
    except (CannotStart, ConfigError, InUse, NewerDatabase, OSError) as error:
        logger.error("Leaseboard cannot start: %s", error)
        close_connections()
        await send({"type": "lifespan.startup.failed", "message": ""})
        return
    except Exception:
        logger.exception("Leaseboard cannot start")
        close_connections()
        await send({"type": "lifespan.startup.failed", "message": ""})
        return
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await running.stop()
    close_connections()
    await send({"type": "lifespan.shutdown.complete"})


def check_database() -> None:
    """Refuse a newer database; whether this one answers is seen later."""
    try:
        with suppress(Error):
            check_not_newer()
    finally:
        connection.close()
