"""Made-up charts and heartbeats for the components page."""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace
from typing import Any

import msgspec

from dashboard.charts.changes_per_hour import hours_chart
from dashboard.charts.heartbeat_ages import ages_chart
from dashboard.pages.components.sample_leases import sample_lease
from dashboard.parts.all_clear import Calm
from dashboard.parts.node_summary import GroupLine, Join, NodesView, beat_view
from leases.domain.connection import Connection, ConnectionState
from leases.domain.phase import Phase

HOURS = (1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 3, 2, 1, 9, 4, 2, 0, 1, 0, 1, 3, 11)
AGES = {(n, Phase.HELD): 11_000 for n in range(10)} | {(24, Phase.LATE): 14, (59, Phase.EXPIRED): 3}


def board_samples(cluster: str, now: datetime) -> dict[str, Any]:
    """The context of the partials of Overview and Nodes."""
    quiet = _nodes(cluster, now)
    beats = [
        beat_view(cluster, sample_lease(phase, now), now) for phase in (Phase.EXPIRED, Phase.LATE)
    ]
    join = Join("Nodes as of 12:03:11.", True, tuple(beats[1:]), 1, tuple(beats[:1]), 1)
    unread = Join("Leaseboard may not list Nodes here: no zones, no readiness.", known=False)
    troubled = msgspec.structs.replace(quiet, worst=tuple(beats), bad=17, join=join)
    changes = hours_chart(HOURS, now, what="Changes of holder")
    away = Connection(state=ConnectionState.STALE, since=now, detail="The cluster does not answer.")
    return {
        "overview": SimpleNamespace(cluster=cluster, hours=changes),
        "ages": ages_chart(AGES, 40.0, of="heartbeats"),
        "node_views": [
            troubled,
            msgspec.structs.replace(quiet, join=Join("Nodes as of 12:03:11.", known=True)),
            msgspec.structs.replace(
                quiet, calm=Calm("Not connected", away.detail, "i-unplug"), join=unread
            ),
        ],
        "group_lines": [
            GroupLine("eu-central-1b", 43_333, 2, 3),
            GroupLine("eu-central-1a", 43_333, 5, 0),
            GroupLine("", 12, 0, 0),
        ],
    }


def _nodes(cluster: str, now: datetime) -> NodesView:
    return NodesView(
        cluster=cluster,
        connection=Connection(state=ConnectionState.LIVE, since=now),
        known=True,
        counts=(("held", 129_983), ("late", 14), ("expired", 3)),
        total=130_000,
        counted_in="24 h",
        joined=312,
        left=298,
        worst=(),
        bad=0,
        finding="130,000 heartbeats: 130,000 held, 0 late, 0 expired.",
        calm=Calm(
            "Every heartbeat is in time", "130,000 heartbeats in time.", "st-held", "is-held"
        ),
        join=Join("", known=True),
    )
