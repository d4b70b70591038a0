"""Real walls of one link, on the real port: each hears each change once and in order."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack

from tests.benchmarks.parts.walls import fill, hand_over, open_walls
from tests.support.processes import serving

WALLS = 5


async def test_walls_that_share_their_frames_hear_everything_once(tmp_path):
    with serving(tmp_path / "data", "--no-demo") as server:
        server.wait_synced()
        api = await asyncio.to_thread(fill, server)
        async with AsyncExitStack() as stack:
            walls = await open_walls(stack, server.printed("Wall"), WALLS)
            await hand_over(api, 1.0, "nobody-counts", 0)
            moments = await hand_over(api, 3.0, "holder-of-turn", 1)
            async with asyncio.timeout(20):
                while any(len(walls.heard.get(holder, ())) < WALLS for holder in moments):
                    await asyncio.sleep(0.05)
            assert {holder: len(times) for holder, times in walls.heard.items()} == dict.fromkeys(
                moments, WALLS
            )
            server.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(server.process.wait, 30) == 0
