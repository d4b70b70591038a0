"""Draw the shapes of a lane as SVG.

One tag draws all shapes of a lane, because a page may have a thousand: it costs a tenth of a
template for each shape, and a third of `format_html`.
"""

from collections.abc import Iterable, Sequence
from html import escape

from django import template
from django.utils.safestring import SafeString

from dashboard.charts.lanes import Fog
from dashboard.parts.formatting import escaped
from dashboard.parts.lane_labels import WHOLLY, ShapeView

register = template.Library()

_EDGE = '<rect class="edge" width="3" height="100%"/>'
_FOG = '<rect class="fog" fill="url(#fog)" width="100%" height="100%"/>'
_LOST = '<rect class="lost" y="19" width="100%" height="3"/>'


@register.simple_tag
def lane_shapes(shapes: Iterable[ShapeView], fogs: Sequence[Fog] = ()) -> SafeString:
    """Draw terms, gaps and bands in their order; every text is escaped.

    `lane_labels` draws the label of a band where one of the `fogs` lies over it.
    """
    return SafeString("".join([_drawn(shape, fogs) for shape in shapes]))


@register.simple_tag
def lane_labels(shapes: Iterable[ShapeView], fogs: Sequence[Fog]) -> SafeString:
    """Draw the labels of bands that stand over the hatching of a time that nobody watched."""
    over = [
        f'<svg class="band" x="{shape.x}%" y="6" width="{shape.width}%" height="22">'
        '<rect class="fill" fill="none" width="100%" height="100%"/>'
        f"{_text(shape, '50%')}</svg>"
        for shape in shapes
        if shape.label and _is_hatched(shape, fogs)
    ]
    return SafeString("".join(over))


def _is_hatched(shape: ShapeView, fogs: Iterable[Fog]) -> bool:
    if shape.what != "band":
        return False
    end = shape.x + shape.width
    return any(fog.x < end and shape.x < fog.x + fog.width for fog in fogs)


def _drawn(shape: ShapeView, fogs: Sequence[Fog]) -> str:
    if shape.what == "term":
        who = shape.holder.identity if shape.holder else ""
        return (
            f'<svg class="term h{shape.hue}" {_place(shape, 6, 22)}'
            f' data-who="{escape(who)}"><title>{escape(shape.title)}</title>'
            '<rect class="fill" width="100%" height="100%" rx="2"/>'
            f"{_EDGE if shape.edge else ''}{_clear_of(shape, fogs)}</svg>"
        )
    if shape.what == "gap":
        return (
            f'<svg class="gap" {_place(shape, 4, 26)} data-gap="{shape.vacant or ""}">'
            f"<title>{escape(shape.title)}</title>{_gap(shape)}</svg>"
        )
    label = "" if _is_hatched(shape, fogs) else _text(shape, "50%")
    title = "" if shape.url else f"<title>{escape(shape.title)}</title>"
    band = (
        f'<svg class="band{" bad" if shape.bad else ""}" {_place(shape, 6, 22)}'
        f' data-many="{shape.changes}">{title}'
        '<rect class="fill" fill="url(#weave)" width="100%" height="100%" rx="2"/>'
        f"{_LOST if shape.bad else ''}{label}</svg>"
    )
    return _zooming(shape, band) if shape.url else band


def _gap(shape: ShapeView) -> str:
    """What nobody watched of a gap is hatched like all unwatched time; the rest is trouble."""
    if shape.narrow:
        css = "gap-mark" if shape.bad else "gap-mark unseen"
        return f'<rect class="{css}" width="4" height="100%" rx="1"/>'
    parts = [
        f'<rect class="gap-fill" fill="url(#hatch)" x="{x}%" width="{width}%" height="100%"/>'
        for x, width in shape.watched
    ]
    return "".join(parts if shape.watched == WHOLLY else [_FOG, *parts])


def _zooming(shape: ShapeView, band: str) -> str:
    """The band as a link; a stroke around it makes a narrow one easier to hit."""
    url = escape(shape.url)
    return (
        f'<a class="zoom" href="{url}" hx-get="{url}" data-zoom>'
        f"<title>{escape(f'Zoom in: {shape.title}')}</title>"
        f'<rect class="hit" x="{shape.x}%" y="2" width="{shape.width}%" height="30"/>{band}</a>'
    )


def _place(shape: ShapeView, y: int, height: int) -> str:
    width = "4" if shape.narrow and shape.what != "band" else f"{shape.width}%"
    return (
        f'x="{shape.x}%" y="{y}" width="{width}" height="{height}"'
        f' data-from="{shape.since}" data-to="{shape.until}"'
    )


def _clear_of(shape: ShapeView, fogs: Iterable[Fog]) -> str:
    """The label of a term; behind the hatching in which it begins, if the term goes on."""
    for fog in fogs:
        until = fog.x + fog.width
        if shape.label and fog.x <= shape.x < until < shape.x + shape.width:
            return _text(shape, f"{(until - shape.x) / shape.width:.2%}", ' dx="9"')
    return _text(shape, "9")


def _text(shape: ShapeView, x: str, more: str = "") -> str:
    return f'<text x="{x}"{more} y="15">{escaped(shape.label)}</text>' if shape.label else ""
