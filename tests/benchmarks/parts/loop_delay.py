"""`manage.py`, with a task beside the runtime that measures how late the event loop is.

python3 -m tests.benchmarks.parts.loop_delay FILE [serve ...]

FILE gets one line per reading: epoch seconds, and by how many milliseconds the loop came late.
Without a command it is a loop with nothing else to do: so late the machine itself lets it come.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from pathlib import Path

import uvicorn
from django.core.management import execute_from_command_line

EVERY = 0.01  # seconds; more often would itself cost what is measured


async def measure(file: Path) -> None:
    """Sleep briefly, again and again, and note what was slept too long."""
    loop = asyncio.get_running_loop()
    with file.open("w") as lines:
        while True:
            asked = loop.time()
            await asyncio.sleep(EVERY)
            late = loop.time() - asked - EVERY
            lines.write(f"{time.time():.3f} {late * 1000:.3f}\n")


class MeasuredServer(uvicorn.Server):
    """uvicorn, with the measuring beside it."""

    file: Path

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        task = asyncio.create_task(measure(self.file))
        try:
            await super().serve(sockets)
        finally:
            task.cancel()


def main() -> None:
    file = Path(sys.argv[1])
    if len(sys.argv) == 2:
        asyncio.run(measure(file))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    MeasuredServer.file = file
    uvicorn.Server = MeasuredServer  # type: ignore[misc]
    execute_from_command_line(["manage.py", *sys.argv[2:]])


if __name__ == "__main__":
    main()
