"""`manage.py` in which every task fails once: as soon as the file FAULTS/<task> is there."""

import asyncio
import functools
import os
import sys
from pathlib import Path
from typing import Any

import django
from django.core.management import execute_from_command_line

os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
django.setup()

from dashboard import watched_cluster
from dashboard.access import ended_rights, links
from dashboard.live import fleet, page_reader, publisher, shared_drawings
from dashboard.pages import nodes
from dashboard.serving import runtime
from dashboard.serving.tasks import (
    added_clusters,
    admin_writes,
    clock_watch,
    cluster_watch,
    history_upkeep,
    incidents,
    notifications,
    supervisor,
)
from leases.actions import deletion_runs
from leases.apiserver.http import port
from leases.apiserver.registry import namespaces
from leases.apiserver.watch import hub
from leases.history import database, recorder
from leases.kube import lease_client
from leases.listener import server
from leases.tracking import tracker

FAULTS = Path(os.environ["FAULTS"])


class Injected(Exception):
    """A fault that nobody expected."""


def fail(task: str) -> None:
    fault = FAULTS / task
    if fault.exists():
        fault.unlink()
        raise Injected(f"a secret of {task}")


def patch(task: str, where: Any, name: str, *, after: bool = False) -> None:
    """Let a function fail, before its work or after it."""
    real = getattr(where, name)

    @functools.wraps(real)
    def replaced(*given: Any, **named: Any) -> Any:
        if not after:
            fail(task)
        done = real(*given, **named)
        if after:
            fail(task)
        return done

    @functools.wraps(real)
    async def replaced_coroutine(*given: Any, **named: Any) -> Any:
        if not after:
            fail(task)
        done = await real(*given, **named)
        if after:
            fail(task)
        return done

    setattr(where, name, replaced_coroutine if asyncio.iscoroutinefunction(real) else replaced)


def patch_run(task: str, where: Any, name: str = "run") -> None:
    """Let `run` fail while it waits: what it calls is called by others too."""
    real = getattr(where, name)

    @functools.wraps(real)
    async def replaced(self: Any) -> None:
        running = asyncio.create_task(real(self))
        try:
            while not running.done():
                fail(task)
                await asyncio.wait([running], timeout=0.05)
            await running
        finally:
            running.cancel()

    setattr(where, name, replaced)


patch("watch", tracker.Tracker, "_follow")
patch("watch-deadlines", tracker.Tracker, "tick")
patch("watch-renewals", tracker.Tracker, "flush", after=True)
patch("nodes", cluster_watch, "list_nodes")
patch("version", lease_client.LeaseClient, "server_version")
patch("publisher", publisher.ClusterHub, "tick")
patch("fleet", fleet.FleetHub, "tick")
patch("strips", fleet, "drawings_of")
patch("recorder", recorder.Recorder, "_batch")
patch("retention", history_upkeep.Forgetting, "run")
patch("reliability", history_upkeep.ReliabilityTotals, "count")
patch("overrides", cluster_watch.KindOverrides, "refresh")
patch("renewals", watched_cluster.WatchedCluster, "look_at_renewals")
patch("added clusters", added_clusters, "_read_rows")
patch_run("clock", clock_watch.ClockWatch)
patch("notifications", notifications.Notifications, "_look")
patch("audit", admin_writes, "resolve_once")
patch("deletions", deletion_runs, "clusters_at_work")
patch_run("incidents", incidents.Incidents)
patch_run("evidence", incidents.Incidents, "look_up")


def memory(_pad: int) -> int:
    """In place of glibc's malloc_trim."""
    fail("memory")
    return 0


patch("database", database.Reach, "look")
runtime.trim_of_malloc = lambda: memory
runtime.GIVE_BACK_SECONDS = 1.0
patch("rights", ended_rights.RightsWatch, "check")
patch("wall link use", links.LinkUse, "write")
links.WRITE_SECONDS = cluster_watch.LOOK_SECONDS = admin_writes.UNANSWERED_LOOK_SECONDS = 1.0
admin_writes.LOOK_SECONDS = added_clusters.LOOK_SECONDS = 1.0

real_is_settled = supervisor.Supervisor._is_settled


def is_settled(self: supervisor.Supervisor, down: Any) -> bool:
    """However long a busy machine takes to look: not before the test has seen it."""
    return (FAULTS / "settle").exists() and real_is_settled(self, down)


supervisor.Supervisor._is_settled = is_settled  # type: ignore[method-assign]
supervisor.Supervisor.__init__.__kwdefaults__["settled"] = 1.0  # type: ignore[index]
patch("demo", runtime, "run_demo")
patch("lease-api", port.Server, "on_tick")
patch("accept", server.Acceptor, "_accept", after=True)
patch("regions", shared_drawings, "_fresh")
patch("picture", nodes.NodeGrid, "_ordered")
patch("socket", page_reader.PageReader, "frame")
patch("sweep", namespaces.Namespaces, "_empty")
patch("bookmarks", hub.Watcher, "mark")
patch("publish", hub.Hub, "_publish", after=True)
execute_from_command_line(sys.argv)
