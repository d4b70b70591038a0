"""`manage.py` that kills itself (SIGKILL) at one step of a write: the one named in the file DIE_AT.

The steps, in order: opened (the row of the audit trail is stored), sending (with the request),
written (the API carried it out), answered (before the row is closed), closed. With a number behind
it, such as "written 45", that many writes pass first. At incident it dies before it writes one.
"""

import os
import signal
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import django
from django.core.management import execute_from_command_line

os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
django.setup()

from dashboard.serving.tasks import admin_writes as task
from leases.actions import unanswered_writes
from leases.history import recorder
from leases.history.insert_incidents import IncidentBatch
from leases.history.refused_rows import RefusedValue
from leases.kube.http_session import Session
from leases.models import Edit

DIE_AT = Path(os.environ["DIE_AT"])
OBJECTS = "/apis/coordination.k8s.io/v1/namespaces/"

# A test does not wait until a lost request cannot arrive any more: its sender is dead.
unanswered_writes.UNDER_WAY = timedelta(0)
task.UNANSWERED_LOOK_SECONDS = 0.2
passed: Counter[str] = Counter()
save, fetch = Edit.asave, Session.fetch
write_incidents = recorder.write_incidents_of


def die_at(step: str) -> None:
    if not DIE_AT.exists():
        return
    wanted, _, number = DIE_AT.read_text().partition(" ")
    passed[step] += 1
    if step == wanted and passed[step] >= int(number or 1):
        os.kill(os.getpid(), signal.SIGKILL)


async def dying_save(row: Edit, *given: Any, **named: Any) -> None:
    closing = not named
    if closing:
        die_at("answered")
    await save(row, *given, **named)
    die_at("closed" if closing else "opened" if "force_insert" in named else "sending")


async def dying_fetch(session: Session, method: str, path: str, **named: Any) -> bytes:
    answer = await fetch(session, method, path, **named)
    dry = "dryRun" in str(named.get("query", ())) + str(named.get("body"))
    if method != "GET" and path.startswith(OBJECTS) and not dry:
        die_at("written")
    return answer


def dying_write(*batches: IncidentBatch) -> list[RefusedValue]:
    die_at("incident")
    return write_incidents(*batches)


recorder.write_incidents_of = dying_write
Edit.asave = dying_save  # type: ignore[assignment, method-assign]
Session.fetch = dying_fetch  # type: ignore[assignment, method-assign]
execute_from_command_line(sys.argv)
