"""A page that shows a cluster with two Leases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from dashboard.live.page_reader import PageReader
from dashboard.live.publisher import ClusterHub
from dashboard.live.shared_drawings import Drawings
from leases.domain.lease import ObjectName
from leases.tracking.store import Store
from leases.wire.watch_decoding import Applied, Listed
from tests.support.board import KEY, a_lease

NOW = datetime.now(UTC)
OTHER = ObjectName("kube-system", "other")


@pytest.fixture
def store():
    one = Store("a")
    one.replace(Listed((a_lease(now=NOW), a_lease(OTHER, now=NOW)), "1"), NOW)
    return one


@pytest.fixture
def hub(store):
    return ClusterHub(store)


@pytest.fixture
def page(hub):
    one = PageReader(hub, Drawings())
    hub.pages.add(one)
    return one


def write(hub, *, seconds: float, version: str, key=KEY, **spec):
    lease = a_lease(key, version=version, now=NOW)
    renewed = lease.spec.renew_time + timedelta(seconds=seconds)
    lease = msgspec.structs.replace(
        lease, spec=msgspec.structs.replace(lease.spec, renew_time=renewed, **spec)
    )
    at = NOW + timedelta(seconds=seconds)
    update = hub.store.follow((Applied(lease),), at)
    if update is not None:
        hub.publish(update)
