"""One cluster that is watched: what we know of it, and how to ask and write to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from dashboard.configuration.cluster_specs import ClusterSpec
from dashboard.parts.kept.holdings import Holdings
from leases.domain.connection import ConnectionState
from leases.domain.kind import Kind
from leases.domain.past.abandoned import DEFAULT_ABANDONED_AFTER
from leases.domain.phase import Phase
from leases.kube.cluster_source import SourceKind
from leases.kube.lease_client import LeaseClient
from leases.tracking.counters import Counters
from leases.tracking.renewal_intervals import RenewalLog
from leases.tracking.store import Store
from leases.wire.status import Unreachable

# By acting user, namespace and verb: when the cluster answered, and whether it allows the verb.
Verdicts = dict[tuple[str, str, str], tuple[datetime, bool]]

SLICE = 100  # Leases looked at in one go
REMEMBERED = timedelta(hours=1)  # renewals of a Lease that has stopped
FOLLOWED = tuple(kind for kind in Kind if kind is not Kind.HEARTBEAT)
QUESTIONS = 4  # pages that may ask one cluster for more than its Leases at a time


class WatchedCluster:
    """One cluster: what we know of it, and how to ask and write to it."""

    def __init__(
        self,
        spec: ClusterSpec,
        *,
        abandoned_after: timedelta = DEFAULT_ABANDONED_AFTER,
        read_only: bool = False,
        impersonate: bool = False,
    ) -> None:
        """`impersonate`: the cluster is asked to take a write for the signed-in person's."""
        self.name = spec.name
        self.read_only = read_only
        self.impersonate = impersonate
        self.verdicts: Verdicts = {}  # see dashboard.parts.kept.write_access
        self.source = spec.source
        self.store = Store(spec.name, abandoned_after=abandoned_after)
        self.counters = Counters()
        self.unprocessed_seconds: Callable[[], float] = float  # see Tracker.unprocessed_seconds
        self.client: LeaseClient | None = None
        self.questions = asyncio.Semaphore(QUESTIONS)
        self.renewals = RenewalLog()
        self.holdings = Holdings(self.store)

    async def look_at_renewals(self, now: datetime) -> None:
        """Remember how regularly all but heartbeats are renewed, and those that a page shows."""
        asked = (self.store.get(key) for key in self.renewals.asked)
        followed = self.store.select(FOLLOWED, tuple(Phase))
        leases = [*followed, *filter(None, asked)]
        for first in range(0, len(leases), SLICE):
            self.renewals.look(leases[first : first + SLICE])
            await asyncio.sleep(0)  # whoever waits for the loop does not wait for all of them
        self.renewals.forget(now - REMEMBERED)

    @property
    def embedded(self) -> bool:
        return self.source.kind is SourceKind.EMBEDDED

    def as_of(self, now: datetime) -> datetime:
        """The moment of what we know of the cluster: see Connection.as_of."""
        return self.store.connection.as_of(now)

    def read_at(self, now: datetime) -> datetime | None:
        """When what we know was true; None when nothing was read yet, by an earlier run either."""
        live = self.store.connection.state is ConnectionState.LIVE
        return now if live else self.store.connection.heard_at or self.store.heard_at

    @property
    def lease_count(self) -> int:
        return count_leases(self.store)

    @property
    def writer(self) -> LeaseClient:
        """The client to write with. Raises Unreachable while there is none."""
        if self.client is None:
            detail = self.store.connection.detail
            raise Unreachable(f"{self.name} is not connected. {detail}".strip())
        return self.client

    def writer_for(self, user: AbstractBaseUser | AnonymousUser) -> LeaseClient:
        """The client for a write by this person. Raises Unreachable while there is none."""
        name = self.acting_user(user)
        return self.writer.acting_as(name) if name else self.writer

    def acting_user(self, user: AbstractBaseUser | AnonymousUser) -> str:
        """The name that the cluster sees instead of ours; empty: ours."""
        return user.get_username() if self.impersonate else ""

    @property
    def synced(self) -> bool:
        return self.store.synced


def count_leases(store: Store) -> int:
    return sum(sum(phases.values()) for phases in store.counts().values())
