"""Mutes and maintenance windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from leases.domain.lease import ObjectName


class Quiet(msgspec.Struct, frozen=True, kw_only=True):
    """Incidents of these Leases alone send nothing from `since` to `until`. "" is all."""

    cluster: str = ""
    namespace: str = ""
    name: str = ""
    since: datetime
    until: datetime | None  # None: until somebody ends it

    def covers(self, cluster: str, lease: ObjectName) -> bool:
        return (
            self.cluster in ("", cluster)
            and self.namespace in ("", lease.namespace)
            and self.name in ("", lease.name)
        )


def is_quiet(
    times: Sequence[Quiet], cluster: str, leases: Iterable[ObjectName], now: datetime
) -> bool:
    """Whether each Lease is muted or in a maintenance window now. No Lease is not quiet."""
    active = [one for one in times if one.since <= now and (one.until is None or now < one.until)]
    among = tuple(leases)
    return bool(among and active) and all(
        any(one.covers(cluster, lease) for one in active) for lease in among
    )
