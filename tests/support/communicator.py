"""A browser's or program's end of a socket, without a network: ASGI messages in and out."""

from __future__ import annotations

import json
from typing import Any

from asgiref.testing import ApplicationCommunicator

PATIENCE = 30.0  # seconds until a message, however busy the machine is


class Socket(ApplicationCommunicator):
    """One socket on a path, as a user."""

    def __init__(
        self, app: Any, path: str, user: Any, headers: list[tuple[bytes, bytes]], **more: Any
    ) -> None:
        path, _, query = path.partition("?")
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": query.encode(),
            "headers": headers,
            "user": user,
            **more,
        }
        super().__init__(app, scope)

    async def receive_output(self, timeout: float = PATIENCE) -> Any:  # noqa: ASYNC109 - as asgiref
        return await super().receive_output(timeout)

    async def connect(self) -> None:
        """Knock; every socket of ours accepts first, so that a refusal has its code."""
        await self.send_input({"type": "websocket.connect"})
        assert (await self.receive_output())["type"] == "websocket.accept"

    async def say(self, text: str) -> None:
        await self.send_input({"type": "websocket.receive", "text": text})

    async def hear(self) -> dict[str, Any]:
        """The next frame, decoded."""
        message = await self.receive_output()
        assert message["type"] == "websocket.send", message
        frame: dict[str, Any] = json.loads(message["text"])
        return frame

    async def leave(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait()
