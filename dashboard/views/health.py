"""For probes: is the process alive, and can it answer?"""

from __future__ import annotations

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard import runtime


@never_cache
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """200 while the process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """200 once the database answers and every cluster has been listed, and while no task of the
    process is down; else 503, a line per reason."""
    running = runtime.get()
    problems = [
        f"cluster {cluster.name}: {cluster.store.connection.state.value}. "
        f"{cluster.store.connection.detail}".strip()
        for cluster in running.clusters.values()
        if not cluster.synced
    ]
    problems += [
        f"task {problem.task}{f' of {problem.cluster}' if problem.cluster else ''}: "
        f"{problem.sentence}"
        for problem in running.supervisor.problems()
    ]
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        problems.append(f"database: {error}")
    text = "\n".join(problems) or "ok"
    return HttpResponse(text + "\n", content_type="text/plain", status=503 if problems else 200)
