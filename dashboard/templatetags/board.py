"""Template tags for icons, and filters for moments and numbers."""

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from dashboard.parts import cluster_menu, formatting
from dashboard.parts.names import HolderView, ShownName, cut_name
from dashboard.parts.page_links import holder_url

register = template.Library()


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    """A symbol of the sprite, such as `i-edit` or `st-held`."""
    css = "st" if name.startswith("st-") else "icon"
    return format_html('<svg class="{}" aria-hidden="true"><use href="#{}"/></svg>', css, name)


@register.simple_tag
@cache
def constant(template: str) -> SafeString:
    """The HTML of a template that is the same on every page."""
    return render_to_string(template)


@register.simple_tag
@cache
def shape(phase: str) -> SafeString:
    """The symbol of a phase in the present colour."""
    return format_html('<svg class="st" aria-hidden="true"><use href="#st-{}"/></svg>', phase)


@register.simple_tag
def holder_link(
    cluster: str, holder: HolderView | None, at: datetime | None = None, *, in_leases: bool = False
) -> str:
    """The URL of what a holder holds; "" for nobody, and for a holder that is not shown whole."""
    if holder is None or not holder.whole:
        return ""
    return holder_url(cluster, holder.identity, at=at, in_leases=in_leases)


@register.filter
def escaped(text: str) -> SafeString:
    return SafeString(formatting.escaped(text))


@register.simple_tag
def cut(name: ShownName | str) -> SafeString:
    """A name that CSS may cut in the middle, as inline text without any space of its own."""
    pieces = cut_name(name) if isinstance(name, str) else name
    if len(pieces) == 1:
        return escaped(pieces[0][0])
    marks = ("i" if may_be_cut else "span" for _, may_be_cut in pieces)
    html = [
        f"<{mark}>{escaped(text)}</{mark}>" for mark, (text, _) in zip(marks, pieces, strict=True)
    ]
    return SafeString(f'<span class="cut">{"".join(html)}</span>')


_FIGURE = '<a class="fig {}" href="{}" title="{}"><b>{}</b><small>{}</small></a>'


@register.simple_tag
def strip_figures(figures: Iterable[Any]) -> SafeString:
    """The figures of a strip. One tag draws them all, because a page may have a thousand."""
    told = ((one.css, one.url, one.title, one.text, one.label) for one in figures)
    return SafeString("".join([_FIGURE.format(*map(escape, one)) for one in told]))


register.simple_tag(cluster_menu.cluster_links)
register.filter("thousands", formatting.thousands)
register.filter("clock", formatting.clock)
register.filter("moment", formatting.when)
register.filter("ahead", formatting.ahead)
register.filter("utc", formatting.utc)
register.filter("unbroken", formatting.unbroken)


@register.filter
def shortened(text: object, limit: int) -> SafeString:
    """Both ends of a text that is too long."""
    return escaped(formatting.shortened(str(text), limit))


@register.filter
def seconds(number: float) -> str:
    """A length of time, rounded to tenths of a second."""
    return formatting.seconds(round(number, 1))


@register.filter
def stacked(moment: str) -> SafeString:
    """A moment as `formatting.when` writes it; a date stands over the time of day, faint."""
    date, _, time = moment.rpartition(" ")
    return format_html('<span class="day">{}</span> {}' if date else "{}{}", date, time)


@register.filter
def mark(tick: Any) -> SafeString:
    """Attributes of an axis' label, by which `static/js/zone_marks.js` knows its moment."""
    html = ' data-step="day"' if tick.of_day else ""
    return format_html('data-t="{}"{}', formatting.utc(tick.at), SafeString(html))


@register.filter
def epoch(moment: datetime) -> float:
    return moment.timestamp()


@register.filter
def dated(moment: datetime) -> str:
    return f"{formatting.day(moment)} {formatting.clock(moment)}"
