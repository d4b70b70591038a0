"""Regions that all pages share: each group has its regions, drawn from its own templates, and drawn
again only when what they are made of moved."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from dashboard.live import shared_drawings
from dashboard.live.publisher import ClusterHub
from dashboard.live.shared_drawings import GROUPS, Drawings, SharedRegions, looks_alike
from leases.domain.steady_clock import Jump
from leases.tracking.store import Store
from leases.wire.watch_decoding import Applied, Listed
from tests.support.board import KEY, a_lease

NOW = datetime.now(UTC)


@pytest.fixture
def hub():
    store = Store("a")
    store.replace(Listed((a_lease(now=NOW),), "1"), NOW)
    return ClusterHub(store)


@pytest.mark.parametrize(
    ("group", "shown"),
    [
        (
            "overview",
            {"kpis": 'data-figure="total"', "attention": "<", "elections": "cp-1", "hours": "<"},
        ),
        ("ages", {"ages": "No heartbeats are known."}),
        (
            "nodes",
            {"no-heartbeats": "", "node-counts": '<dl class="facts', "worst": "<", "join": "<"},
        ),
        ("zones", {"groups": "The Nodes have no zones"}),
        ("pools", {"groups": "The Nodes have no pools"}),
    ],
)
def test_a_group_draws_its_regions_and_none_of_them_again(hub, group, shown):
    drawn = shared_drawings._fresh(GROUPS[group].draw, {}, hub, NOW)
    assert list(drawn) == list(shown)
    for region, (_, html) in drawn.items():
        assert shown[region] in html
        assert type(html) is str
    known = {
        region: shared_drawings.Drawn(1, stamp, html) for region, (stamp, html) in drawn.items()
    }
    assert shared_drawings._fresh(GROUPS[group].draw, known, hub, NOW) == {}


@pytest.mark.parametrize("moves", [{"holder_identity": "cp-2"}, {"holder_identity": None}])
def test_a_changed_lease_is_drawn_again(hub, moves):
    drawn = shared_drawings._fresh(GROUPS["overview"].draw, {}, hub, NOW)
    assert 'href="/c/a/leases/kube-system/scheduler/"' in drawn["elections"][1]
    known = {name: shared_drawings.Drawn(1, *one) for name, one in drawn.items()}
    lease = a_lease(version="2", now=NOW)
    lease = msgspec.structs.replace(lease, spec=msgspec.structs.replace(lease.spec, **moves))
    update = hub.store.follow((Applied(lease),), NOW)
    hub.publish(update)
    again = shared_drawings._fresh(GROUPS["overview"].draw, known, hub, NOW)
    assert "kpis" in again
    assert ("elections" in again) is (moves["holder_identity"] is None)


async def test_a_drawing_that_fails_is_reported_as_one_of_regions(hub, monkeypatch):
    failures: list[tuple[str, str]] = []
    shared = SharedRegions(lambda part, error: failures.append((part, str(error))))

    def failing(*_given: object) -> None:
        raise ValueError("no template")

    monkeypatch.setattr(shared_drawings, "_fresh", failing)
    shared.tick(hub, ["ages"], NOW)
    (drawing,) = shared._drawing.values()
    await drawing
    assert failures == [("regions", "no template")]
    assert shared.drawn == {}
    assert shared._drawing == {}
    shared.tick(hub, ["ages"], NOW)
    assert shared._drawing == {}  # not before its time


async def test_a_drawing_during_a_step_of_the_clock_is_not_shown(hub, monkeypatch):
    began, goes_on = threading.Event(), threading.Event()
    fresh = shared_drawings._fresh

    def slow(*given):
        began.set()
        assert goes_on.wait(60)
        return fresh(*given)

    async def drawn(now: datetime) -> Mapping[str, shared_drawings.Drawn]:
        hub.shared.tick(hub, ["nodes"], now)
        await asyncio.gather(*hub.shared._drawing.values())
        return hub.shared.drawn.get("nodes", {})

    before = await drawn(NOW)
    hour = timedelta(hours=1)
    monkeypatch.setattr(shared_drawings, "_fresh", slow)
    hub.shared._drawn_at.clear()
    hub.shared.tick(hub, ["nodes"], NOW)
    await asyncio.to_thread(began.wait, 60)
    for clocked in (hub.store, hub):
        clocked.clock_jumped(Jump(NOW, NOW + hour))
    assert hub.shared.drawn == {}, "a page that opens now gets no moment of the old clock"
    goes_on.set()
    await asyncio.gather(*hub.shared._drawing.values())
    assert hub.shared.drawn == {}, "nor one of both clocks"
    after = await drawn(NOW + hour)  # without waiting until it is due
    assert after.keys() == before.keys()
    assert min(one.number for one in after.values()) > max(one.number for one in before.values())


def test_a_moved_phase_concerns_the_groups_that_show_phases():
    shared = SharedRegions()
    shared.moved()
    assert shared._moved == {"nodes", "zones", "pools", "overview"}


def state_of(**spec: object):
    store = Store("a")
    lease = a_lease(now=NOW)
    store.replace(
        Listed(
            (msgspec.structs.replace(lease, spec=msgspec.structs.replace(lease.spec, **spec)),), "1"
        ),
        NOW,
    )
    return store.get(KEY)


@pytest.mark.parametrize(
    "spec",
    [
        {"holder_identity": "cp-2"},
        {"lease_duration_seconds": 16},
        {"acquire_time": NOW},
        {"lease_transitions": 4},
        {"strategy": "OldestEmulationVersion"},
        {"preferred_holder": "cp-2"},
    ],
)
def test_a_row_is_drawn_again_for_every_field_that_it_shows(spec):
    assert looks_alike(state_of(), state_of())
    assert not looks_alike(state_of(), state_of(**spec))


def test_a_row_is_drawn_again_at_the_first_renewal():
    untimed = state_of(lease_duration_seconds=None)
    assert not looks_alike(untimed.replace(renew_time=None), untimed)


@pytest.mark.parametrize(
    "meta", [{"uid": "u-2"}, {"labels": {"a": "b"}}, {"annotations": {"a": "b"}}]
)
def test_a_row_is_drawn_again_for_metadata_that_it_shows(meta):
    store = Store("a")
    lease = a_lease(now=NOW)
    metadata = msgspec.structs.replace(lease.metadata, **meta)
    store.replace(Listed((msgspec.structs.replace(lease, metadata=metadata),), "1"), NOW)
    assert not looks_alike(state_of(), store.get(KEY))


def test_a_row_is_drawn_once_an_hour_and_names_its_cluster(hub, monkeypatch):
    drawings, tracked = Drawings(), hub.store.get(KEY)
    six = datetime(2026, 11, 20, 6, 59, tzinfo=UTC)
    html = drawings.draw("a", "row", tracked, six, hub.activity)
    assert 'href="/c/a/leases/kube-system/scheduler/"' in html
    assert drawings.draw("a", "row", tracked, six, hub.activity) is html
    assert drawings.draw("a", "tile", tracked, six, hub.activity) != html
    assert "/c/b/" in drawings.draw("b", "row", tracked, six, hub.activity)
    assert drawings.draw("a", "row", tracked, six.replace(hour=7), hub.activity) is not html
    assert len(drawings._kept) == 3
    monkeypatch.setattr(Drawings, "LIMIT", 3)
    drawings.draw("b", "tile", tracked, six, hub.activity)
    assert len(drawings._kept) == 1


def test_a_row_that_no_page_asks_for_is_not_kept(hub):
    tracked = hub.store.get(KEY)

    def draw(part: str) -> str:
        return drawings.draw("a", part, tracked, NOW, hub.activity)

    drawings = Drawings(keep_seconds=0)
    html = draw("row")
    assert draw("row") is draw("row") is html, "a page asks each time"
    draw("tile"), draw("tile")
    assert draw("row") is not html
