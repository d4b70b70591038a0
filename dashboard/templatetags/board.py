"""Template tags for icons, and filters for moments and numbers."""

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any

from django import template
from django.template.defaultfilters import capfirst
from django.template.loader import render_to_string
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from dashboard.charts.bars import Sparkline
from dashboard.parts import cluster_menu, formatting
from dashboard.parts.change_sentence import ChangeLine, WrittenBy
from dashboard.parts.flapping import FlapView
from dashboard.parts.incident_line import ChangeCause
from dashboard.parts.lease_row import Freshness, RowView
from dashboard.parts.names import HolderView, ShownName, cluster_path, cut_name
from dashboard.parts.page_links import holder_url

register = template.Library()

_SHORT_HOST = 6  # letters that CSS does not cut
_LASTING = ("expired", "vacant", "unknown")  # phases that flapping does not stand for


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


@register.simple_tag
def holder(
    view: HolderView | None, url: str = "", *, at_link: bool = False, nobody: str = "no holder"
) -> SafeString:
    """Who holds, or `nobody`; `url`: what it holds; `at_link` where the playhead moves that URL."""
    if not view:
        return SafeString(
            f'<span class="holder none"><span class="host">{escaped(nobody)}</span></span>'
        )
    host, tail = view.ends
    tag, link, whole = "span", "", escaped(view.identity)
    if url:
        tag, link = "a", f' aria-label="{whole}"'
    href = f' href="{escape(url)}"{" data-at-link" if at_link else ""}' if url else ""
    ends = f'<span class="tail">{escaped(tail)}</span>' if tail else ""
    ends += f'<span class="id">{escaped(view.id)}</span>' if view.id else ""
    return SafeString(
        f'<{tag}{href} class="holder h{view.hue}" title="{whole}"{link}>'
        f'<span class="host{" long" if len(host) > _SHORT_HOST else ""}">{escaped(host)}</span>'
        f"{ends}</{tag}>"
    )


@register.simple_tag
def state(
    phase: str,
    *,
    flap: FlapView | None = None,
    excuse: str = "",
    pill: bool = False,
    excused: bool = False,
) -> SafeString:
    """A state as shape, colour and word. A held Lease may flap instead. `pill` makes it a badge;
    `excuse` says in words why it is no problem, `excused` only that it is none.
    """
    if flap and phase not in _LASTING:
        return SafeString(
            f'<span class="state is-late flap" title="{escape(flap.says)}">{icon("i-flap")}'
            f"<span>Flapping <small>{escape(flap.short)}</small></span></span>"
        )
    css = " flap" if flap else " flap excused" if excuse else " excused" if excused else ""
    title = f' title="{escape(flap.says)}"' if flap else ""
    word = "Not understood" if phase == "unknown" else capfirst(phase)
    aside = (flap.short if flap else "") or excuse
    small = f" <small>{escape(aside)}</small>" if aside else ""
    return SafeString(
        f'<span class="state is-{escape(phase)}{" pill" if pill else ""}{css}"{title}>'
        f"{shape(phase)}<span>{escape(word)}{small}</span></span>"
    )


@register.simple_tag
def fresh(of: Freshness, phase: str, *, short: bool = False) -> SafeString:
    """What is left of a Lease, and the age of its last renewal; `short`: without its "ago"."""
    bar = duration = ""
    if of.duration:
        tick = (
            "" if of.tick is None else f'<rect class="tick" x="{of.tick}" width="1.5" height="6"/>'
        )
        duration = f' data-duration="{of.duration}"'
        bar = (
            '<svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
            f'<rect class="left" width="{of.left}" height="6"/>{tick}</svg>'
        )
    edited = f' data-edited="{of.edited}"' if of.edited else ""
    return SafeString(
        f'<span class="fresh is-{escape(phase)}{"" if of.duration else " open"}" data-fresh'
        f' data-observed="{of.observed}"{edited}{duration}{" data-short" if short else ""}>'
        f'{bar}<span class="age">{escape(of.age)}{"" if short else " ago"}</span></span>'
    )


@register.simple_tag
def spark(of: Sparkline) -> SafeString:
    """Changes per hour of the last day."""
    blind = f", {of.unwatched} h not watched" if of.unwatched else ""
    paths = f'<path class="fog" fill="url(#fog)" d="{of.blind}"/>' if of.blind else ""
    paths += f'<path class="bar zero" d="{of.zero}"/>'
    paths += f'<path class="bar" d="{of.some}"/>' if of.some else ""
    paths += f'<path class="bar hot" d="{of.hot}"/>' if of.hot else ""
    return SafeString(
        '<svg class="spark" viewBox="0 0 76 18" role="img" aria-label="'
        f'{formatting.counted(of.total, "change")} in 24 h{blind}">{paths}</svg>'
    )


@register.simple_tag
def lease_row(row: RowView) -> SafeString:
    """One Lease in a list, on the overview or in a live frame. A template takes three times as
    long, and a page has up to two thousand.
    """
    key, url, reason = escape(row.key), escape(row.url), escape(row.kind_reason)
    css = " flaps" if row.flap else " excused" if row.excuse else ""
    domain = f'<span class="dom">{escape(row.domain)}</span>' if row.domain else ""
    who = _NOT_KNOWN if row.skipped and not row.holder else holder(row.holder)
    return SafeString(
        f'<tr role="row" id="row-{key}" class="is-{escape(row.phase)}{css}" data-key="{key}"'
        f' data-href="{url}">\n'
        '<td role="cell" class="c-state m-state"><label class="choose only-edit"><input'
        f' type="checkbox" name="lease" value="{key}" form="choose"><span class="vh">Choose {key}'
        f"</span></label> {_state_of(row)}</td>\n"
        f'<td role="cell" class="m-name"><span class="lease" title="{key}"><span class="ns">'
        f'{cut(row.namespace)}</span> <a class="name" href="{url}" aria-label="{escape(row.name)}">'
        f"{cut(row.shown)}{domain}</a></span></td>\n"
        f'<td role="cell" class="c-kind m-hide muted" title="{reason}">{escape(row.kind)} <span'
        f' class="reason">{reason}</span></td>\n'
        f'<td role="cell" class="c-hold m-holder">{who}</td>\n'
        f'<td role="cell" class="c-held num muted m-hide">{_held_of(row, key)}</td>\n'
        f'<td role="cell" class="c-fresh m-fresh">{_freshness_of(row)}</td>\n'
        f'<td role="cell" class="c-spark m-hide">{spark(row.spark) if row.spark else ""}</td>\n'
        f'<td role="cell" class="c-n num m-hide">{escape(row.transitions)}</td>\n</tr>\n'
    )


_NOT_KNOWN = '<span class="faint">not known</span>'


def _state_of(row: RowView) -> SafeString:
    return state(row.phase, flap=row.flap, excuse=row.excuse)


def _held_of(row: RowView, key: str) -> str:
    held = row.held
    if held is None:
        return _NOT_KNOWN if row.skipped else '<span class="faint">none</span>'
    counts = (
        f' data-since="{held.since}" data-measure="held-for" data-of="lease:{key}" data-span="now"'
        if held.since
        else ""
    )
    note = capfirst(escape(held.note))
    began = f'<small class="faint part" title="{note}">{escape(held.began)}</small>'
    return f"<span{counts}>{escape(held.length)}</span>{began if held.began else ''}"


def _freshness_of(row: RowView) -> str:
    word = ""
    if row.flap or row.phase in ("expired", "vacant"):
        word = f'<span class="word">{_state_of(row)}</span> '
    if row.fresh and not row.skipped:
        return word + fresh(row.fresh, row.phase)
    said = row.skipped or (f"since {row.vacant_since}" if row.vacant_since else "no renewTime")
    return f'{word}<span class="since muted">{escape(said)}</span>'


@register.simple_tag
def author(of: WrittenBy) -> SafeString:
    """Who did something through a form, and why."""
    reason = f": <span data-verbatim>{shortened(of.reason, 120)}</span>" if of.reason else ""
    return SafeString(f"{shortened(of.username, 40)}{reason}")


@register.simple_tag
def change_row(line: ChangeLine, *, across: object = None) -> SafeString:
    """A change as a row; `across`: of several clusters, so it names its own. A template takes four
    times as long, and a live change is drawn twice.
    """
    change, url, key = line.change, escape(line.url), escape(line.key)
    told, tone = escaped(line.sentence), f"is-{line.phase}" if line.phase else "plain"
    cell = cluster = ""
    if across:
        cell = f'<td role="cell" class="m-hide">{_cluster_of(line, "link")}</td>\n'
        cluster = f"{_cluster_of(line, 'tag sm-only')} "
    by = ""
    if line.written_by or change.writer:
        who = f"by {author(line.written_by)}" if line.written_by else escaped(line.by_whom)
        by = f'<span class="by">{who}</span>'
    following = '<span class="faint">no change</span>'
    if line.from_to:
        following = _holder_then(line, line.next)
    window = f' title="{escape(line.window)}"' if line.window else ""
    return SafeString(
        f'<tr role="row" data-href="{url}" title="{told}" {_data_of(line, key)}>\n'
        f'<td role="cell" class="m-state">{_moment_of(line, "muted")}</td>\n{cell}'
        f'<td role="cell" class="m-name"><span class="state {tone}">{icon(line.icon)}<span>'
        f"{escape(line.word)}</span></span>{_cause_of(line.cause)}{by}</td>\n"
        f'<td role="cell" class="m-wide">\n<span class="lease" title="{key}"><span class="ns">'
        f'{cut(change.namespace)}</span> <a class="name" href="{url}"'
        f' aria-label="{escape(change.name)}">{cut(line.shown)}</a>\n</span><span class="told">'
        f"{cluster}{told}</span>\n</td>\n"
        f'<td role="cell" class="m-hide">{_holder_then(line, line.before)}</td>\n'
        f'<td role="cell" class="m-hide">{following}</td>\n'
        f'<td role="cell" class="c-gap num m-hide {"gap-long" if line.gap_is_long else "muted"}">'
        f"{escape(line.gap)}</td>\n"
        f'<td role="cell" class="c-how m-hide muted wrap"{window}>{_how_seen(line)}</td>\n</tr>\n'
    )


@register.simple_tag
def change_item(line: ChangeLine, *, across: object = None) -> SafeString:
    """A change as a sentence in a list; `across`: of several clusters, so it names its own."""
    cluster = f"{_cluster_of(line, 'tag')} " if across else ""
    window = f' <span class="tag">{escape(line.window)}</span>' if line.window else ""
    by = ""
    if line.written_by:
        href = escape(line.written_by.url)
        by = f'\n<a class="tag" href="{href}">by {author(line.written_by)}</a>'
    elif line.by_hand and not line.by_form:
        by = f'\n<span class="tag hand">{escaped(line.by_whom)}</span>'
    css = f' class="is-{line.phase}"' if line.phase else ""
    return SafeString(
        f"<li{css} {_data_of(line, escape(line.key))}>\n{_moment_of(line)}{icon(line.icon)}\n"
        f"<p>{cluster}{_sentence_of(line)}{window}{by}{_cause_of(line.cause)}</p>\n</li>\n"
    )


def _cluster_of(line: ChangeLine, css: str) -> str:
    cluster = line.change.cluster
    href = escape(cluster_path("overview", cluster))
    return f'<a class="{css}" href="{href}">{escape(cluster)}</a>'


def _data_of(line: ChangeLine, key: str) -> str:
    at, change = line.change.at.timestamp(), line.change.change.value
    return f'data-id="{line.id}" data-at="{at}" data-of="{key}" data-change="{change}"'


def _moment_of(line: ChangeLine, css: str = "") -> str:
    at, marked = formatting.utc(line.change.at), f' class="{css}"' if css else ""
    return (
        f'<time{marked} datetime="{at}"><a href="{escape(line.at_url)}"'
        f' title="{at}: the Lease as of then">{stacked(line.moment)}</a></time>'
    )


def _cause_of(cause: ChangeCause | None) -> str:
    if cause is None:
        return ""
    return (
        f'\n<a class="why-link" href="{escape(cause.url)}" title="{escape(cause.meaning)}">'
        f"{icon(cause.icon)}{escape(cause.word)}</a>\n"
    )


def _holder_then(line: ChangeLine, view: HolderView | None) -> SafeString:
    url = holder_link(line.change.cluster, view, line.change.at)
    return holder(view, url, nobody="nobody")


def _how_seen(line: ChangeLine) -> str:
    change = line.change
    said = "inferred" if change.inferred else "later" if line.window else "live"
    if line.written_by:
        href = escape(line.written_by.url)
        said += f',\n<a class="link" href="{href}">by {author(line.written_by)}</a>'
    elif change.writer:
        css = ' class="strong"' if line.by_hand else ""
        said += f',\n<span{css} title="{escape(change.writer)}">{escaped(line.by_whom)}</span>'
    return said + (f' <span class="bad">{change.missed} missed</span>' if change.missed else "")


def _sentence_of(line: ChangeLine) -> str:
    """The change in words, its names marked, without white space of its own."""
    html = []
    for part in line.parts:
        text: str = escaped(part.text)
        if part.mark == "name":
            named = f'href="{escape(line.url)}" title="{escape(line.key)}"'
            text = f'<a class="name" {named} aria-label="{text}">{cut(line.shown)}</a>'
        elif part.mark == "holder":
            whole = f' title="{escape(part.whole)}"' if part.whole else ""
            text = f"<code{whole}>{cut(part.text)}</code>"
        elif part.mark == "bad":
            text = f'<span class="bad">{text}</span>'
        html.append(text)
    return "".join(html)


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
