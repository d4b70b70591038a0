"""Replicas that end and begin again."""

from __future__ import annotations

import asyncio
import signal
import time

from tests.support.processes import Server
from tests.support.replicas import Replicas


async def restart(replicas: Replicas, name: str, how: signal.Signals = signal.SIGTERM) -> None:
    """End the replica `one` or `other` by a signal, start it anew, and print how long both took."""
    server: Server = getattr(replicas, name)
    begun = time.monotonic()
    server.process.send_signal(how)
    code = await asyncio.to_thread(server.process.wait, 60)
    ended = time.monotonic()
    setattr(replicas, name, await asyncio.to_thread(server.again))
    ready = time.monotonic()
    print(
        f"{name}: ended with {code} after {ended - begun:.1f} s, serves {ready - ended:.1f} s later"
    )
