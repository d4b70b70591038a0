"""A recorder that runs in a thread of its own."""

from __future__ import annotations

import asyncio

from leases.domain.lease import ObjectName

KEY = ObjectName("kube-system", "scheduler")


async def in_thread(call):
    from asgiref.sync import sync_to_async

    return await sync_to_async(call)()


async def until(condition, seconds: float = 5.0):
    async with asyncio.timeout(seconds):
        while not await in_thread(condition):
            await asyncio.sleep(0.01)
