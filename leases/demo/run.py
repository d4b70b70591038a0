"""Run the demo against a Lease API until cancelled."""

from __future__ import annotations

import asyncio
import logging
import time

from leases.demo.actors import Actors
from leases.demo.demo_client import ApiDownError, DemoApi
from leases.demo.demo_pod import forget_pods
from leases.demo.elector import Pace
from leases.demo.names import NAMESPACES
from leases.demo.schedule import script

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


async def run_demo(*, url: str, token: str, seed: int = 1, tempo: float = 1.0) -> None:
    """Run a small busy cluster at the API at `url` until cancelled. It deletes nothing at the end.

    `tempo`: how many times faster than real time. The API may be down at the start or restart at
    any time. Leases of an earlier run are contended for like any others.
    """
    pace = Pace(tempo)
    async with DemoApi(url=url, token=token) as api:
        candidates = await _prepare(api)
        stage = Actors(api=api, pace=pace, seed=seed, candidates=candidates)
        async with asyncio.TaskGroup() as cast:
            for life in stage.lives():
                cast.create_task(life)
            started = time.monotonic()
            for cue in script(seed):
                await asyncio.sleep(max(0.0, started + cue.at / tempo - time.monotonic()))
                logger.debug("demo: %s %s", cue.act, cue.target)
                cast.create_task(stage.perform(cue))


async def _prepare(api: DemoApi) -> bool:
    """Create the namespaces as soon as the API answers. Return whether it serves candidates."""
    while True:
        try:
            for namespace in NAMESPACES:
                await api.ensure_namespace(namespace)
                await forget_pods(api, namespace)
            return await api.serves_candidates()
        except ApiDownError as error:
            logger.info("demo: waiting for the API: %s", error)
            await asyncio.sleep(RETRY_SECONDS)
