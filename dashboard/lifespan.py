"""ASGI lifespan: the runtime starts before the first request and stops after the last."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from dashboard import runtime
from leases.apiserver.lock import InUse
from leases.apiserver.start_refusal import CannotStart

logger = logging.getLogger(__name__)

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


async def lifespan(_scope: Message, receive: Receive, send: Send) -> None:
    """Answer the server's two lifespan messages."""
    await receive()
    try:
        running = await runtime.launch()
    except (CannotStart, InUse, OSError) as error:
        logger.error("Leaseboard cannot start: %s", error)
        await send({"type": "lifespan.startup.failed", "message": ""})
        return
    except Exception:
        logger.exception("Leaseboard cannot start")
        await send({"type": "lifespan.startup.failed", "message": ""})
        return
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await running.stop()
    await send({"type": "lifespan.shutdown.complete"})
