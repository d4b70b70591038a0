"""Lanes are drawn as text: what people wrote stays text in it."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest
from django.template.loader import render_to_string

from dashboard.charts.lanes import Fog, shapes
from dashboard.charts.time_axis import Scale
from dashboard.parts.lane_labels import ShapeView, shape_views
from dashboard.parts.names import HolderView, holder_view
from dashboard.templatetags.lanes import lane_labels, lane_shapes
from leases.domain.change import ChangeType
from leases.domain.terms import fold
from tests.support.values import story
from tests.support.values.leases import after

HOSTILE = '"><script>1</script>&'


@pytest.mark.parametrize("what", ["term", "gap", "band"])
def test_texts_of_a_shape_are_escaped(what: str) -> None:
    shape = ShapeView(
        what=what, x=1.5, width=20.0, since=1.0, until=2.0, hue=3,
        holder=HolderView(HOSTILE, HOSTILE, "", "", 3), label=HOSTILE, title=HOSTILE, edge=True,
        narrow=False, bad=True, changes=7, url=HOSTILE,
    )  # fmt: skip
    drawn = lane_shapes([shape])
    assert "<script>" not in drawn
    assert "&quot;&gt;&lt;script&gt;1&lt;/script&gt;&amp;" in drawn


def test_a_band_that_zooms_says_so_once() -> None:
    shape = ShapeView(
        what="band", x=40.0, width=20.0, since=1.0, until=2.0, hue=3, holder=None,
        label="12 changes", title="12 changes: 09:00 to 10:00", edge=True, narrow=False, bad=False,
        changes=12, url="?from=1",
    )  # fmt: skip
    drawn = lane_shapes([shape])
    assert re.findall("<title>(.*?)</title>", drawn) == ["Zoom in: 12 changes: 09:00 to 10:00"]
    assert "Zoom in" not in lane_shapes([msgspec.structs.replace(shape, url="")])


@pytest.mark.parametrize(
    ("fog", "place"),
    [
        ((30.0, 15.0), 'x="25.00%" dx="9"'),  # it begins in it and goes on
        ((30.0, 30.0), 'x="9"'),  # nobody watched any of it
        ((45.0, 5.0), 'x="9"'),
    ],
)
def test_the_label_of_a_term_stands_behind_the_hatching_in_which_it_begins(
    fog: tuple[float, float], place: str
) -> None:
    shape = ShapeView(
        what="term", x=40.0, width=20.0, since=1.0, until=2.0, hue=3,
        holder=HolderView("k2-b", "k2-b", "", "", 3), label="k2-b", title="k2-b", edge=True,
        narrow=False, bad=False, changes=1,
    )  # fmt: skip
    assert f'<text {place} y="15">k2-b</text>' in lane_shapes([shape], [Fog(*fog, NOON, NOON)])


def test_the_label_of_a_band_stands_over_the_hatching_of_unwatched_time() -> None:
    shape = ShapeView(
        what="band", x=40.0, width=20.0, since=1.0, until=2.0, hue=3, holder=None,
        label="12 changes", title="12 changes", edge=True, narrow=False, bad=False, changes=12,
    )  # fmt: skip
    beside, over = Fog(60.0, 9.0, NOON, NOON), Fog(50.0, 30.0, NOON, NOON)
    assert "12 changes</text>" in lane_shapes([shape], [beside])
    assert lane_labels([shape], [beside]) == ""
    assert "12 changes</text>" not in lane_shapes([shape], [beside, over])
    assert "12 changes</text>" in lane_labels([shape], [beside, over])
    shown = {"since": NOON, "until": NOON, "at": NOON}
    stretch = {"blind": [over], "shown": shown}
    lane = {"shapes": [shape], "key": "default/busy", "dot": {"icon": "st-held"}}
    page = render_to_string("timeline/_lanes.html", {"lanes": [lane], "stretch": stretch})
    assert '<svg class="lane over"' in page
    past = {"shapes": [shape], "fogs": [over], "shown": shown}
    page = render_to_string("leases/_past.html", {"past": past})
    assert page.index("Nobody watched") < page.index("12 changes</text>")


NOON = after(0)
HOUR = Scale(NOON, NOON + timedelta(hours=1))


def drawn(*holders: str, every: float = 600.0) -> list[ShapeView]:
    """The terms of a lane on which each holder follows the one before it."""
    steps = [(0.0, ChangeType.CREATED, holders[0])]
    steps += [
        (number * every, ChangeType.REPLACED, holder) for number, holder in enumerate(holders)
    ][1:]
    life = fold([story.change_at(*step) for step in steps])
    views = shape_views(shapes(life, HOUR), NOON + timedelta(hours=1), zoom=lambda *_: "")
    return [view for view in views if view.holder is not None]


def test_neighbours_on_a_lane_never_share_a_hue() -> None:
    nodes = [f"control-plane-{number}" for number in range(1, 12)]
    alike = [name for name in nodes if holder_view(name).hue == holder_view(nodes[1]).hue]
    assert len(alike) > 1
    views = drawn(*alike[:2], *nodes[:3])
    pairs = [(one, other) for one, other in pairwise(views) if one.holder != other.holder]
    assert all(one.hue != other.hue for one, other in pairs)
    assert len({(view.holder.identity, view.hue) for view in views}) == len(
        {view.holder.identity for view in views}
    )


def test_the_newest_holder_has_the_hue_of_the_other_pages() -> None:
    nodes = [f"control-plane-{number}" for number in range(1, 12)]
    alike = [name for name in nodes if holder_view(name).hue == holder_view(nodes[1]).hue][:2]
    views = drawn(*alike)
    assert views[-1].hue == views[-1].holder.hue
    assert views[0].hue != views[0].holder.hue


def test_labels_keep_what_differs_between_neighbours() -> None:
    labels = [view.label for view in drawn("control-plane-2", "control-plane-9", every=300)]
    assert labels == ["…plane-2", "control-plane-9"]
    middle = ("node-a1-of-the-rack", "node-b1-of-the-rack", "node-c1-of-the-rack")
    labels = [view.label for view in drawn(*middle, every=500)]
    assert len(set(labels)) == 3
    assert "b1" in labels[1]


def test_what_nobody_watched_of_a_gap_is_not_red() -> None:
    """A gap of half an hour, one that nobody watched, and a band of many short ones."""
    steps: list[tuple[float, ChangeType, str | None]] = [
        (0, ChangeType.CREATED, "a"), (600, ChangeType.RELEASED, None),
        (1200, ChangeType.ACQUIRED, "b"), (1800, ChangeType.RELEASED, None),
        (2400, ChangeType.ACQUIRED, "a"), (3000, ChangeType.RELEASED, None),
        (3005, ChangeType.ACQUIRED, "b"),
    ]  # fmt: skip
    for at in (3200, 3224, 3248):
        steps += [(at, ChangeType.RELEASED, None), (at + 12, ChangeType.ACQUIRED, "b")]
    life = fold([story.change_at(*step) for step in steps])
    blind = [(after(900), after(1050)), (after(1800), after(2400)), (after(2999), after(3300))]
    views = shape_views(shapes(life, HOUR), after(3600), zoom=lambda *_: "", blind=blind)
    gaps = [view for view in views if view.what == "gap"]
    assert [view.watched for view in gaps] == [((0, 50), (75, 25)), (), ()]
    assert [view.bad for view in gaps] == [True, False, False]
    assert [view.narrow for view in gaps] == [False, False, True]
    (band,) = [view for view in views if view.what == "band"]
    assert (band.bad, "without a holder" in band.title) == (False, False)
    partly, unseen, mark = [lane_shapes([view]) for view in gaps]
    assert "url(#fog)" in partly
    assert 'fill="url(#hatch)" x="0.0%" width="50.0%"' in partly
    assert "url(#hatch)" not in unseen
    assert 'class="gap-mark unseen"' in mark
    seen = shape_views(shapes(life, HOUR), after(3600), zoom=lambda *_: "")
    assert all(view.bad for view in seen if view.what != "term")
    assert all("url(#fog)" not in lane_shapes([view]) for view in seen)
