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

from dashboard.access.rights import rights_watch
from dashboard.access.wall import link_use
from dashboard.live import page_reader, publisher, shared_drawings
from dashboard.pages.nodes import node_grid
from dashboard.parts.kept import watched_cluster
from dashboard.serving import runtime
from dashboard.serving.tasks import (
    clock_watch,
    deletions,
    incidents,
    kind_overrides,
    node_reading,
    notifications,
    reliability,
    retention,
    supervisor,
    unanswered_writes,
)
from leases.actions.delete_many import records
from leases.apiserver.http import listening
from leases.apiserver.registry import namespaces
from leases.apiserver.watch import hub
from leases.history.write import recorder
from leases.listener import accept_connections
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
patch("nodes", node_reading, "list_nodes")
patch("publisher", publisher.ClusterHub, "tick")
patch("recorder", recorder.Recorder, "_batch")
patch("retention", retention.Forgetting, "run")
patch("reliability", reliability.ReliabilityTotals, "count")
patch("overrides", kind_overrides.KindOverrides, "refresh")
patch("renewals", watched_cluster.WatchedCluster, "look_at_renewals")
patch_run("clock", clock_watch.ClockWatch)
patch("notifications", notifications.Notifications, "_look")
patch("audit", unanswered_writes, "resolve_once")
patch("deletions", records, "interrupt_lost")
patch_run("incidents", incidents.Incidents)
patch_run("evidence", incidents.Incidents, "look_up")
patch("rights", rights_watch.RightsWatch, "check")
patch("wall link use", link_use.LinkUse, "write")
link_use.WRITE_SECONDS = kind_overrides.LOOK_SECONDS = unanswered_writes.LOOK_SECONDS = 1.0
deletions.LOOK_SECONDS = 1.0

real_is_settled = supervisor.Supervisor._is_settled


def is_settled(self: supervisor.Supervisor, down: Any) -> bool:
    """However long a busy machine takes to look: not before the test has seen it."""
    return (FAULTS / "settle").exists() and real_is_settled(self, down)


supervisor.Supervisor._is_settled = is_settled  # type: ignore[method-assign]
supervisor.Supervisor.__init__.__kwdefaults__["settled"] = 1.0  # type: ignore[index]
patch("demo", runtime, "run_demo")
patch("lease-api", listening.Server, "on_tick")
patch("accept", accept_connections.Acceptor, "_accept", after=True)
patch("regions", shared_drawings, "_fresh")
patch("picture", node_grid.NodeGrid, "_ordered")
patch("socket", page_reader.PageReader, "frame")
patch("sweep", namespaces.Namespaces, "_empty")
patch("bookmarks", hub.Watcher, "mark")
patch("publish", hub.Hub, "_publish", after=True)
execute_from_command_line(sys.argv)
