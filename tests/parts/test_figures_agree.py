"""Key figures, their captions and the parts that they are made of are one count."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.live.messages import figures_of
from dashboard.live.publisher import ClusterHub
from dashboard.pages.overview import summary
from dashboard.parts.formatting import age, percent
from dashboard.parts.node_summary import nodes_view
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.tracking.store import Store
from tests.support.values.tracked_leases import NOW, tracked

standings = st.lists(
    st.tuples(st.sampled_from(Kind), st.sampled_from(Phase), st.integers(1, 40)), max_size=12
)


def hub_of(standing: list[tuple[Kind, Phase, int]]) -> ClusterHub:
    """A cluster with so many Leases of each kind and phase."""
    store = Store("a")
    store.restore(
        (
            tracked(
                f"lease-{group}-{number}",
                kind=kind,
                phase=phase,
                holder=None if phase is Phase.VACANT else "cp-1",
                duration=None if phase is Phase.UNTIMED else 15,
            )
            for group, (kind, phase, many) in enumerate(standing)
            for number in range(many)
        ),
        NOW,
    )
    return ClusterHub(store)


def numbers(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", text)]


@given(standings)
def test_the_strip_adds_up_and_each_caption_agrees_with_its_figure(standing):
    view = summary(hub_of(standing), NOW)
    strip = {kpi.figure: kpi for kpi in view.kpis if kpi.figure}
    if not standing:
        assert not strip  # nothing was read, so nothing is counted
        return
    value = {name: numbers(kpi.value[0][0])[0] for name, kpi in strip.items()}
    total = sum(many for _, _, many in standing)
    assert value["total"] == total == sum(value[phase.value] for phase in Phase)
    assert numbers(strip["total"].detail) == [view.election_total]
    assert strip["held"].detail == percent(value["held"], total)
    for phase in set(Phase) - {Phase.HELD}:
        made_of = numbers(strip[phase.value].detail)
        assert sum(made_of) == value[phase.value], strip[phase.value].detail
        assert strip[phase.value].bad <= (value[phase.value] > 0)


@given(standings)
def test_a_live_frame_says_what_the_whole_page_does(standing):
    hub = hub_of(standing)
    drawn = {
        kpi.figure: (kpi.value[0][0], kpi.detail, kpi.bad)
        for kpi in summary(hub, NOW).kpis
        if kpi.figure
    }
    assert figures_of(hub.store) == drawn


@given(standings)
def test_the_heartbeats_of_the_nodes_page_add_up(standing):
    view = nodes_view(hub_of(standing), NOW)
    parts = dict(view.counts)
    assert view.total == sum(parts.values())
    assert view.bad == parts["late"] + parts["expired"]
    if standing:
        total, *shown = numbers(view.finding)
        assert total == view.total == sum(shown)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=8))
def test_shares_never_say_more_than_all_and_all_means_all(parts):
    whole = sum(parts)
    reported = [percent(part, whole) for part in parts]
    exact = [float(text.removesuffix(" %")) for text in reported if not text.startswith("under")]
    assert sum(exact) <= 100.0001 + len(parts) / 2
    for part, text in zip(parts, reported, strict=True):
        assert (text == "100 %") == (part == whole > 0)
        assert (text == "0 %") == (part == 0)


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (1, 3, "33 %"), (2, 3, "67 %"), (1, 15, "7 %"), (989, 1000, "99 %"),
        (1209, 1229, "98 %"), (995, 1000, "99.5 %"),
        (99_999, 100_000, "99.99 %"), (1, 130_000, "under 0.01 %"), (4, 1000, "0.4 %"),
        (0, 0, "0 %"), (0.5, 60.0, "0.83 %"),
    ],
)  # fmt: skip
def test_a_share_is_rounded_to_the_nearest_and_down_near_both_ends(part, whole, text):
    assert percent(part, whole) == text


@given(st.floats(0, 10**8))
def test_a_length_of_time_is_rounded_down(seconds):
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    words = age(seconds).split()
    pairs = list(zip(words[::2], words[1::2], strict=True))
    reported = sum(float(number) * units[unit] for number, unit in pairs)
    step = 0.1 if "." in words[0] else units[pairs[-1][1]]
    assert reported - 1e-6 <= seconds < reported + step
