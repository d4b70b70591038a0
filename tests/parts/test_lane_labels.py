"""Lanes are drawn as text: what people wrote stays text in it."""

from __future__ import annotations

import pytest

from dashboard.parts.lane_labels import ShapeView
from dashboard.parts.names import HolderView
from dashboard.templatetags.lanes import lane_shapes

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
