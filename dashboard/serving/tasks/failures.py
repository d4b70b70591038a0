"""What a failure of the embedded Lease API, or of what open pages share, means to a reader."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from dashboard.live.publisher import ClusterHub
from dashboard.serving.tasks.supervisor import Supervisor
from leases.apiserver.failing import Failed, Keep

EFFECTS = {
    "regions": "Parts of open pages of {} are not drawn anew.",
    "picture": "The picture of all heartbeats of {} is not drawn anew.",
}
API_EFFECTS = {
    "lease-api": "The embedded Lease API does not answer.",
    "elections": "The embedded Lease API elects no holders (CoordinatedLeaderElection).",
}


def report_failures(supervisor: Supervisor, cluster: str, hub: ClusterHub) -> None:
    """Let the supervisor know what fails in one cluster's channel."""

    def failed(part: str, error: Exception) -> None:
        effect = EFFECTS.get(part)
        if effect is None:
            supervisor.noted(part, error, cluster=cluster)
        else:
            supervisor.failed(part, error, effect=effect.format(cluster), cluster=cluster)

    hub.failed = failed


def keep_lease_api(supervisor: Supervisor) -> Keep:
    """Runs the tasks of the embedded Lease API."""

    def keep(
        task: str, work: Callable[[], Awaitable[None]], *, may_end: Callable[[], bool]
    ) -> asyncio.Task[None]:
        return supervisor.start(task, work, effect=API_EFFECTS[task], may_end=may_end)

    return keep


def lease_api_failed(supervisor: Supervisor) -> Failed:
    """Told what went wrong in a part of the embedded Lease API, which goes on."""

    def failed(part: str, error: Exception) -> None:
        effect = "The embedded Lease API failed on a request or on an event."
        supervisor.failed(part, error, effect=effect)

    return failed
