"""Probes: is the process alive, and is it ready?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import Error
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.middleware.common import CommonMiddleware
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.access.api_tokens import PROBES, sends_token
from dashboard.access.guards import may_view
from dashboard.board import running_board
from dashboard.config import VERSION, VERSION_HEADER
from dashboard.log_lines import redact
from dashboard.watched_cluster import WatchedCluster
from leases.history.database import reach

if TYPE_CHECKING:
    from dashboard.board import Problem


class KnownHosts(CommonMiddleware):
    """Refuse a request under a host that LEASEBOARD_ALLOWED_HOSTS lacks, unless it is a probe.

    Probes and Prometheus come by the address of the machine. Their answers name no host back.
    """

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        return None if request.path in PROBES else super().process_request(request)


@never_cache
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """200 while the process answers; the header names the version."""
    headers = {VERSION_HEADER: VERSION}
    return HttpResponse("ok\n", content_type="text/plain", headers=headers)


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 if this process can serve pages, also from memory: it is not about to end.

    A database that does not answer, clusters that were not listed, tasks that are down and totals
    of reliability that do not go on are named beside it: pages say so too, and without this process
    nobody would see the other clusters. Only readers and the metrics token see names and addresses;
    others see numbers.
    """
    running = running_board()
    if running.leaving:
        return HttpResponse("stopping\n", content_type="text/plain", status=503)
    clusters = [one for one in running.clusters.values() if not (one.synced or one.paused)]
    tasks = running.supervisor.problems()
    lines = ["ok"]
    if reach.error:
        lines.append("history is not reachable: the database does not answer")
    if running.counts.stalled:
        lines.append(running.counts.stalled)
    if _may_know(request):
        lines += [*map(_of_cluster, clusters), *map(_of_task, tasks)]
        if reach.error:
            lines.append(f"database: {reach.error}")
    elif clusters or tasks:
        missing = f"{len(clusters)} of {len(running.clusters)} clusters not listed"
        lines.append(f"{missing}, {len(tasks)} tasks down")
    text = redact("\n".join([*lines, ""]))
    return HttpResponse(text, content_type="text/plain")


def _may_know(request: HttpRequest) -> bool:
    if sends_token(request):
        return True
    try:
        return may_view(request.user)
    except Error:  # the database cannot say who asks
        return False


def _of_cluster(cluster: WatchedCluster) -> str:
    connection = cluster.connection
    return f"cluster {cluster.name}: {connection.state.value}. {connection.detail}".strip()


def _of_task(problem: Problem) -> str:
    of = f" of {problem.cluster}" if problem.cluster else ""
    return f"task {problem.task}{of}: {problem.sentence}"
