"""A Lease as JSON, now or as of an instant, as docs/api.md has it."""

from datetime import datetime
from typing import Any

from leases.domain.flapping import Flapping
from leases.history.states_as_of import State
from leases.tracking.tracked_lease import Tracked
from leases.wire.microtime import format_microtime, microtime_or_none


def lease_item(cluster: str, tracked: Tracked, flapping: Flapping | None = None) -> dict[str, Any]:
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
        "acquire_time": microtime_or_none(spec.acquire_time),
        "renew_time": microtime_or_none(spec.renew_time),
        "observed_at": microtime_or_none(tracked.observed_at),
        "duration_seconds": spec.lease_duration_seconds,
        "transitions": spec.lease_transitions,
        "cadence_seconds": tracked.cadence_seconds,
        "expires_at": microtime_or_none(tracked.runs_out_at),
        "resource_version": meta.resource_version,
        "abandoned": tracked.abandoned,
        "may_be_vacant": bool(tracked.lasting.may_be_vacant),
        "flapping": None if flapping is None else _flapping(flapping),
    }
    if not_understood is not None:
        item["not_understood_since"] = microtime_or_none(not_understood.since)
    return item


def _flapping(how: Flapping) -> dict[str, Any]:
    return {
        "changes": how.changes,
        "since": format_microtime(how.since),
        "within_seconds": int(how.within.total_seconds()),
        "counted_since": microtime_or_none(how.counted_since),
        "holders": how.holders,
        "hosts": how.hosts,
        "gap_seconds": how.gap_seconds,
    }


def item_as_of(cluster: str, state: State, at: datetime, *, watched: bool) -> dict[str, Any]:
    """As docs/api.md has it; what history does not keep is null."""
    standing = state.standing
    return {
        "cluster": cluster,
        "namespace": state.key.namespace,
        "name": state.key.name,
        "uid": state.uid,
        "kind": state.kind.value,
        "kind_reason": None,
        "phase": standing.phase.value,
        "holder": standing.holder,
        "acquire_time": None,
        "renew_time": None,
        "observed_at": None,
        "duration_seconds": None,
        "transitions": state.transitions,
        "cadence_seconds": None,
        "expires_at": None,
        "resource_version": None,
        "abandoned": state.abandoned,
        "may_be_vacant": state.may_be_vacant,
        "flapping": None,
        "as_of": format_microtime(at),
        "since": microtime_or_none(standing.since),
        "watched": watched,
    }
