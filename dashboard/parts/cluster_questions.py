"""Ask a cluster what a page can do without: side by side, within limits; a refusal is an answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from dashboard.parts.holder_place import SECONDS
from dashboard.parts.names import holder_in_path
from dashboard.watched_cluster import WatchedCluster
from leases.domain.election import Candidate
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.kube.holder_pods import HolderPlace
from leases.kube.kube_objects import KubeEvent, newest_events
from leases.kube.lease_client import candidates_of
from leases.tracking.tracked_lease import Tracked
from leases.wire.status import ApiError, Forbidden, NotFound, Unauthorized

WITHIN = 3.0  # seconds for each answer
MAX_EVENTS = 20
T = TypeVar("T")


class NoAnswer(msgspec.Struct, frozen=True):
    """Why there is no answer: one sentence. `quiet`: nothing is wrong, it is just not to be had."""

    text: str
    quiet: bool


class ClusterAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """`managed` is metadata.managedFields, newest last; candidates are None if there are none."""

    managed: list[dict[str, Any]] | NoAnswer
    events: tuple[KubeEvent, ...] | NoAnswer
    candidates: tuple[Candidate, ...] | NoAnswer | None
    place: HolderPlace | None = None  # where the holder runs; None: there is no holder
    held_by: str = ""  # that holder, as `holder_in_path` names it


async def ask(cluster: WatchedCluster, key: ObjectName) -> ClusterAnswers:
    """All of it; takes no longer than a few seconds, however ill the cluster is."""
    tracked = cluster.store.get(key)
    async with cluster.questions:
        managed, events, candidates, place = await asyncio.gather(
            _answer(lambda: _managed(cluster, key), "this Lease", "get", "leases"),
            _answer(lambda: _events(cluster, key), "Events", "list", "events"),
            _answer(
                lambda: candidates_of(cluster.writer, key, within=WITHIN),
                "LeaseCandidates",
                "list",
                "leasecandidates",
            ),
            _place(cluster, tracked),
        )
    return ClusterAnswers(
        managed=managed,
        events=events,
        candidates=candidates,
        place=place,
        held_by="" if tracked is None else holder_in_path(tracked.holder or ""),
    )


async def _events(cluster: WatchedCluster, key: ObjectName) -> tuple[KubeEvent, ...]:
    return await newest_events(cluster.writer, "Lease", key, count=MAX_EVENTS, within=WITHIN)


async def _place(cluster: WatchedCluster, tracked: Tracked | None) -> HolderPlace | None:
    if tracked is None or tracked.holder is None:
        return None
    is_node = tracked.kind is Kind.HEARTBEAT
    return await cluster.pods.place_of(tracked.key, tracked.holder, is_node=is_node, within=SECONDS)


async def _managed(cluster: WatchedCluster, key: ObjectName) -> list[dict[str, Any]] | NoAnswer:
    try:
        whole = await cluster.writer.raw_get(key, within=WITHIN)
    except NotFound:
        return NoAnswer("The Lease is not in the cluster any more.", quiet=True)
    entries = whole.get("metadata", {}).get("managedFields") or []
    return [entry for entry in entries if isinstance(entry, dict)]


async def _answer(
    question: Callable[[], Awaitable[T]], what: str, verb: str, resource: str
) -> T | NoAnswer:
    try:
        async with asyncio.timeout(2 * WITHIN):
            return await question()
    except Forbidden:
        return NoAnswer(f"We may not read {what} here: grant {verb} on {resource}.", quiet=True)
    except NotFound:
        return NoAnswer(f"This cluster has no {what}.", quiet=True)
    except Unauthorized as error:
        return NoAnswer(f"The cluster does not accept our credentials ({error}).", quiet=False)
    except ApiError as error:
        return NoAnswer(str(error), quiet=False)
    except TimeoutError:
        return NoAnswer(f"The cluster did not tell {what} within {2 * WITHIN:g} s.", quiet=False)
