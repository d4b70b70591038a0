"""Batches of changes, some of which a database refuses."""

from __future__ import annotations

from leases.history.write_batch import Batch
from tests.support.values.changes import T0

BEYOND = 2**70  # no database's integer


def a_batch(*changes, states=(), spans=(), encode=bytes, version="7", cluster="a"):
    return Batch(
        cluster=cluster, changes=changes, states=tuple(states), encode=encode,
        resource_version=version, complete=True, watched_until=T0, process="p", spans=tuple(spans),
        went_back=False,
    )  # fmt: skip
