"""Read the Nodes of one cluster again and again."""

from __future__ import annotations

import asyncio
import logging
import time

from dashboard import clock
from dashboard.parts.kept.node_book import NodeBook
from dashboard.parts.kept.watched_cluster import WatchedCluster
from leases.kube.lease_client import LeaseClient
from leases.kube.nodes import list_nodes
from leases.wire.status import ApiError, Forbidden, NotFound

logger = logging.getLogger(__name__)

READ_EVERY = 60.0  # seconds; a list that takes long is read less often
NONE_EVERY = 5.0  # while there are no Nodes: kubelets may be about to register
SHARE = 0.02  # of the time that may be spent on reading
REFUSED_EVERY = 600.0


async def read_nodes(cluster: WatchedCluster, book: NodeBook) -> None:
    """Read them into the book, until cancelled."""
    while True:
        started = time.monotonic()
        wait = 1.0
        if cluster.client is not None:
            wait = await _read(cluster.name, cluster.client, book)
        took = time.monotonic() - started
        await asyncio.sleep(max(wait, took / SHARE))


async def _read(cluster: str, client: LeaseClient, book: NodeBook) -> float:
    """Return the seconds until the next reading."""
    began = clock.now()
    try:
        found = await list_nodes(client)
    except Forbidden:
        book.problem = "Leaseboard may not list Nodes here: no zones, no readiness."
        return REFUSED_EVERY
    except NotFound:
        book.problem = f"{cluster} serves no Nodes, so no zones and no readiness."
        return REFUSED_EVERY
    except ApiError as error:
        logger.info("%s: Nodes could not be read: %s", cluster, error)
        book.problem = f"The Nodes could not be read: {client.advise(error)}"
        return READ_EVERY
    if not found:
        problem = f"{cluster} has no Nodes, so no zones and no readiness."
        await book.replace((), None, problem)
        return NONE_EVERY
    await book.replace(found, began, "")
    return READ_EVERY
