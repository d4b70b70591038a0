"""Answer requests that are cut off because the process ends."""

from __future__ import annotations

from typing import Any

from dashboard.serving.requests.busy import Send, answer_busy

ENDING = "Leaseboard is about to start again. Reload this page in a few seconds."


class CutAnswer:
    """Sends the answer to one request until `refuse` is called."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self._refused = False

    async def __call__(self, message: dict[str, Any]) -> None:
        if not self._refused:
            self._begun = True
            await self._send(message)

    async def refuse(self) -> None:
        """Answer 503 if nothing was sent yet. Otherwise the connection ends in the middle."""
        if not (self._begun or self._refused):
            self._refused = True
            await answer_busy(self._send, ENDING)
        self._refused = True
