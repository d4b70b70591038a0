"""Resolves the rows of the audit trail that a crash, or a missing answer, left open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime

from django.db import DatabaseError

from dashboard.parts.kept.watched_cluster import WatchedCluster
from leases.actions.unanswered_writes import resolve, unanswered
from leases.wire.status import ApiError

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0


async def resolve_unanswered(
    clusters: Mapping[str, WatchedCluster], now: Callable[[], datetime]
) -> None:
    """Look at the start and then again and again, until cancelled."""
    while True:
        try:
            await resolve_once(clusters, now())
        except DatabaseError as error:
            logger.warning("Open rows of the audit trail cannot be read just now: %s", error)
        await asyncio.sleep(LOOK_SECONDS)


async def resolve_once(clusters: Mapping[str, WatchedCluster], now: datetime) -> None:
    """Resolve what the clusters that answer can prove; the other rows wait."""
    for row in await unanswered(clusters):
        client = clusters[row.cluster].client
        if client is None:
            continue
        try:
            verdict = await resolve(row, client, now=now)
        except ApiError as error:
            logger.info("The audit row %d waits: %s", row.pk, error)
            continue
        if verdict is not None:
            logger.info(
                "The audit row %d was left open: %s (%s)", row.pk, verdict.outcome, verdict.sentence
            )
