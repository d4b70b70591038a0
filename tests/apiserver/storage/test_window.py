"""How many past events are kept: few that are old, so that memory stays flat."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from leases.apiserver.errors import log_failure
from leases.apiserver.storage import store as storage
from leases.apiserver.storage.store import ObjectStore, Plan

SPACE = "default"


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
async def store(tmp_path: Path, clock: list[float]) -> AsyncIterator[ObjectStore]:
    store = ObjectStore(tmp_path, log_failure, monotonic=lambda: clock[0])
    await store.open()
    yield store
    await store.close()


async def renew(store: ObjectStore, times: int) -> None:
    obj: dict[str, Any] = {"metadata": {"name": "a", "namespace": SPACE, "labels": {"x": "y"}}}
    for _ in range(times):
        await store.write("leases", SPACE, "a", lambda _: Plan(obj))


async def test_old_events_go_but_for_the_newest(
    store: ObjectStore, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "KEPT_EVENTS", 4)
    for _ in range(60):  # an hour
        await renew(store, 3)
        clock[0] += 60.0
        recent = storage.WINDOW_SECONDS + storage.MARK_SECONDS + 60.0
        assert len(store.events_after(0)) <= max(4, 3 * recent / 60.0)
    assert store.floor == store.events_after(0)[0].revision - 1
    clock[0] += 3600.0
    await renew(store, 1)
    assert len(store.events_after(0)) == 4, "also after hours a watch resumes from these"
    assert store.floor == store.revision - 4


async def test_a_window_of_few_events_keeps_them_all(
    store: ObjectStore, clock: list[float]
) -> None:
    before = store.floor
    for _ in range(20):
        await renew(store, 1)
        clock[0] += 600.0
    assert len(store.events_after(0)) == 20
    assert store.floor == before


async def test_kept_versions_share_what_a_renewal_does_not_change(store: ObjectStore) -> None:
    await renew(store, 2)
    first, second = (event.current for event in store.events_after(0))
    assert first is not None
    assert second is not None
    assert first.labels is second.labels
    assert first.name is second.name
