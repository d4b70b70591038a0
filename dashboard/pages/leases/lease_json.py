"""A Lease as JSON: the contract of `leases/?format=json`, see docs/api.md."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from leases.tracking.tracked_lease import Tracked
from leases.wire.microtime import format_microtime


def lease_item(cluster: str, tracked: Tracked) -> dict[str, Any]:
    """Times are RFC 3339 in UTC with microseconds; unknown values are null.

    `not_understood_since` is present only if the newest write was not understood.
    """
    not_understood = tracked.lasting.not_understood
    meta, spec = tracked.lease.metadata, tracked.lease.spec
    item = {
        "cluster": cluster,
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "kind": tracked.kind.value,
        "kind_reason": tracked.kind_reason,
        "phase": tracked.phase.value,
        "holder": tracked.holder,
        "acquire_time": _time(spec.acquire_time),
        "renew_time": _time(spec.renew_time),
        "observed_at": _time(tracked.observed_at),
        "duration_seconds": spec.lease_duration_seconds,
        "transitions": spec.lease_transitions,
        "cadence_seconds": tracked.cadence_seconds,
        "expires_at": _time(tracked.runs_out_at),
        "resource_version": meta.resource_version,
    }
    if not_understood is not None:
        item["not_understood_since"] = _time(not_understood.since)
    return item


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else format_microtime(moment)
