"""A holder as JSON, see docs/api.md."""

from __future__ import annotations

from typing import Any

from dashboard.parts.kept.holdings import HolderSummary
from leases.tracking.tracked_lease import Tracked
from leases.wire.microtime import microtime_or_none


def holder_item(cluster: str, holder: HolderSummary, *, held: int) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "holder": holder.name,
        "identities": list(holder.identities),
        "takes_down": holder.takes_down,
        "share": 10_000 * holder.takes_down // held / 10_000 if held else 0.0,
        "terms": holder.terms,
        "heartbeat": holder.heartbeat.phase.value if holder.heartbeat else None,
        "holds": [_held_item(tracked) for tracked in holder.holds],
    }


def _held_item(tracked: Tracked) -> dict[str, Any]:
    meta = tracked.lease.metadata
    return {
        "namespace": meta.namespace,
        "name": meta.name,
        "kind": tracked.kind.value,
        "phase": tracked.phase.value,
        "held_since": microtime_or_none(tracked.held_since),
    }
