"""The shapes of lanes as SVG. There may be a thousand on a page, so one tag draws a lane of them:
it costs a tenth of a template for each.
"""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from dashboard.presenters.lane_shape import ShapeView

register = template.Library()

_TERM = (
    '<svg class="term h{}" x="{}%" y="6" width="{}" height="22" data-from="{}" data-to="{}"'
    ' data-who="{}"><title>{}</title><rect class="fill" width="100%" height="100%" rx="2"/>'
    "{}{}</svg>"
)
_GAP = (
    '<svg class="gap" x="{}%" y="4" width="{}" height="26" data-from="{}" data-to="{}" data-gap>'
    "<title>{}</title>{}</svg>"
)
_BAND = (
    '<svg class="band{}" x="{}%" y="6" width="{}" height="22" data-from="{}" data-to="{}"'
    ' data-many="{}"><title>{}</title>'
    '<rect class="fill" fill="url(#weave)" width="100%" height="100%" rx="2"/>{}{}</svg>'
)
_EDGE = SafeString('<rect class="edge" width="3" height="100%"/>')
_HATCH = SafeString('<rect class="gap-fill" fill="url(#hatch)" width="100%" height="100%"/>')
_MARK = SafeString('<rect class="gap-mark" width="4" height="100%" rx="1"/>')
_LOST = SafeString('<rect class="lost" y="19" width="100%" height="3"/>')
_NONE = SafeString("")


@register.simple_tag
def lane_shapes(shapes: Iterable[ShapeView]) -> SafeString:
    """Terms, gaps and bands of merged changes, in their order."""
    return format_html_join("", "{}", ((_drawn(shape),) for shape in shapes))


def _drawn(shape: ShapeView) -> SafeString:
    width = "4" if shape.narrow else f"{shape.width}%"
    if shape.what == "term":
        return format_html(
            _TERM, shape.hue, shape.x, width, shape.since, shape.until, shape.holder, shape.title,
            _EDGE if shape.edge else _NONE,
            _text(shape, 9),
        )  # fmt: skip
    if shape.what == "gap":
        sign = _MARK if shape.narrow else _HATCH
        return format_html(_GAP, shape.x, width, shape.since, shape.until, shape.title, sign)
    return format_html(
        _BAND, " bad" if shape.bad else "", shape.x, f"{shape.width}%", shape.since, shape.until,
        shape.changes, shape.title,
        _LOST if shape.bad else _NONE,
        _text(shape, "50%"),
    )  # fmt: skip


def _text(shape: ShapeView, x: int | str) -> SafeString:
    if not shape.label:
        return _NONE
    return format_html('<text x="{}" y="15">{}</text>', x, shape.label)
