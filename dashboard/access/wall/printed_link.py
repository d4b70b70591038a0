"""The wall link that `serve` prints: the same after each start, for a screen that runs for weeks.

Its token lies in the data directory beside the other keys. The database keeps the digest alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from dashboard.access.wall import links
from leases.history.write.replica_lock import turn
from leases.models import WallLink

FILE_NAME = "wall_link"
NAME = "wall"
CREATED_BY = "serve"


def printed_wall_link(data: Path, clusters: Sequence[str], *, now: datetime) -> tuple[str, str]:
    """A cluster and a token that opens its wall. Makes a new link if the kept one opens none.

    The kept link is never widened: whoever has it opens the clusters that it was made for.
    """
    path = data / FILE_NAME
    with turn("wall link"):  # replicas that start at once choose different names
        kept = path.read_text().strip() if path.exists() else ""
        link = links.find(kept) if kept else None
        for cluster in clusters:
            if links.why_closed(link, cluster=cluster, now=now) is None:
                return cluster, kept
        _, token = links.create(
            name=_free_name(), clusters=clusters, created_by=CREATED_BY, now=now
        )
    _keep(path, token)
    return clusters[0], token


def _free_name() -> str:
    taken = set(WallLink.objects.filter(revoked_at=None).values_list("name", flat=True))
    names = [NAME, *(f"{NAME} {number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)


def _keep(path: Path, token: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(f"{token}\n")
