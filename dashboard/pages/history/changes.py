"""The History page: filter changes, page back in time, export."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.http import HttpResponse, HttpResponseBase, QueryDict, StreamingHttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.lists import responses
from dashboard.lists.controls import Chip
from dashboard.lists.url_parameters import (
    LARGEST_PAGE,
    BadFilter,
    for_input,
    holder_text,
    number,
    one_of,
    read_moment,
    text,
    typed,
    words,
    write_moment,
)
from dashboard.parts.cause_words import CAUSE_WORDS
from dashboard.parts.change_sentence import WORDS, signed_lines, with_known_causes, with_unwritten
from dashboard.parts.changes_strip import strip_of, strip_view
from dashboard.parts.formatting import capitalized, counted, shortened, span_of
from dashboard.parts.lease_filter import PAGE_SIZE
from dashboard.parts.page_links import filter_texts, history_query
from dashboard.parts.time_range import MAX_RANGE, RANGES, SHORTEST
from leases.domain.cause.incident import Cause
from leases.domain.change import ChangeType
from leases.domain.kind import Kind
from leases.history import export, find_changes
from leases.history.change_counts import density
from leases.history.find_changes import BadCursor
from leases.history.indexed_search import HistoryFilter
from leases.history.watched_spans import unwatched_times

_TRUTH = {"": None, "true": True, "false": False}
TABLE, LINES = VIEWS = ("table", "sentences")


class HistoryView(msgspec.Struct, frozen=True, kw_only=True):
    """The filter and how the list is drawn. `range` (as on the timeline, or "") ends now."""

    wanted: HistoryFilter
    range: str = ""
    view: str = TABLE

    def as_of(self, now: datetime) -> HistoryFilter:
        """The filter with the range applied."""
        if not self.range:
            return self.wanted
        since = now - RANGES[self.range]
        if self.wanted.since is not None:
            since = max(since, self.wanted.since)
        return msgspec.structs.replace(self.wanted, since=since)


def read_history_view(query: QueryDict, now: datetime) -> HistoryView:
    """Raises BadFilter."""
    return HistoryView(
        wanted=read_history_filter(query, now),
        range=one_of(query, "range", ("", *RANGES)),
        view=one_of(query, "view", VIEWS),
    )


def read_history_filter(query: QueryDict, now: datetime) -> HistoryFilter:
    """A time of day means the last one before `until` or now. Raises BadFilter."""
    until = read_moment(query.get("until", ""), "until", now)
    return HistoryFilter(
        change=words(query, "change", ChangeType),
        kind=words(query, "kind", Kind),
        cause=words(query, "cause", Cause),
        namespace=text(query, "namespace") or None,
        lease=text(query, "lease") or None,
        holder=holder_text(query, "holder") or None,
        text=text(query, "q"),
        inferred=_TRUTH[one_of(query, "inferred", tuple(_TRUTH))],
        since=read_moment(query.get("since", ""), "since", until or now),
        until=until,
    )


RANGE_LABELS = {"": "All times"} | {
    name: f"Last {span_of(length)}" for name, length in RANGES.items()
}
CHOICES = {
    "ranges": list(RANGE_LABELS.items()),
    "changes": list(WORDS.items()),
    "kinds": list(Kind),
    "causes": [(cause.value, capitalized(word)) for cause, word in CAUSE_WORDS.items()],
}
MAX_SAID = 80  # characters of a value in the sentence that an empty list says
SAID = {"q": "a name or holder contains", "since": "since", "until": "until"}
VIEW_LABELS = {TABLE: "Table", LINES: "Sentences"}


def view_query(state: HistoryView, /, **more: str) -> str:
    """The query string of a state of the page, without default values."""
    shape = "" if state.view == TABLE else state.view
    return history_query(state.wanted, **({"range": state.range, "view": shape} | more))


def chosen(changes: Sequence[str], kinds: Sequence[str], causes: Sequence[str]) -> dict[str, Any]:
    """The chosen kinds of change and of Lease, and causes; the labels have a few words."""
    words = [WORDS[ChangeType(change)] for change in changes]
    why = [capitalized(CAUSE_WORDS[Cause(cause)]) for cause in causes]
    return {
        "change": changes,
        "change_label": _few(words, "kinds of change"),
        "kind": kinds,
        "cause": causes,
        "cause_label": _few(why, "causes"),
    }


def _few(words: Sequence[str], many: str) -> str:
    return ", ".join(words) if len(words) < 3 else f"{len(words)} {many}"


def exact_names(path: str, query: QueryDict) -> tuple[Chip, ...]:
    """The whole names in a URL, each with the URL without it."""
    chips = []
    for name in ("lease", "holder"):
        rest = query.copy()
        given = "".join(rest.pop(name, [])[-1:])
        rest.pop("before", None)
        if given:
            shown = shortened(for_input(given), MAX_SAID)
            chips.append(Chip(name, shown, f"{path}?{rest.urlencode()}", on=True))
    return tuple(chips)


def history_board(
    path: str,
    query: QueryDict,
    view: HistoryView,
    *,
    total: int,
    exact: bool,
    older: str | None,
    before: str | None,
) -> dict[str, Any]:
    """Make the controls of the page at `path` and `query`; `older` and `before` are cursors."""

    def url(**more: str) -> str:
        query = view_query(view, **more)
        return f"{path}?{query}" if query else path

    wanted, texts = view.wanted, filter_texts(view.wanted)
    return {
        **texts,
        **CHOICES,
        "holder": for_input(texts["holder"]),
        "range": view.range,
        **chosen(wanted.change, wanted.kind, wanted.cause),
        "view": view.view,
        "views": [
            Chip(name, label, url(view="" if name == TABLE else name), name == view.view)
            for name, label in VIEW_LABELS.items()
        ],
        "says": _says(view, texts),
        "total": counted(total, "change") if exact else f"more than {counted(total, 'change')}",
        "newest": before is None and wanted.until is None,
        "plain": wanted == HistoryFilter() and not view.range,
        "exact": exact_names(path, query),
        "older_url": url(before=older) if older else "",
        "newest_url": url() if before else "",
        "clear_url": path,
        "csv_url": url(format="csv", view=""),
        "ndjson_url": url(format="ndjson", view=""),
    }


def _says(view: HistoryView, texts: dict[str, str]) -> str:
    said = [RANGE_LABELS[view.range]] if view.range else []
    if view.wanted.change:
        said.append(f"change is {' or '.join(view.wanted.change)}".replace("_", " "))
    if view.wanted.kind:
        said.append(f"kind is {' or '.join(view.wanted.kind)}")
    if view.wanted.cause:
        said.append(f"cause is {' or '.join(CAUSE_WORDS[Cause(one)] for one in view.wanted.cause)}")
    said += [
        f"{SAID.get(name, f'{name} is')} {shortened(value, MAX_SAID)}"
        for name, value in texts.items()
        if value
    ]
    return capitalized(for_input(", ".join(said)))


MAX_PART = 40  # characters of one value
MAX_NAME = 180  # a file name has 255 bytes at most, with its ending


def export_name(cluster: str, wanted: HistoryFilter, now: datetime) -> str:
    """Such as `prod-history-expired-kube-scheduler-20261120T0300Z-20261120T0330Z`.

    An export without an end ends now. Any name is safe: other characters become a dash.
    """
    texts = filter_texts(wanted)
    values = [*wanted.change, *wanted.kind, *wanted.cause]
    values += [texts[name] for name in ("namespace", "lease", "holder", "q")]
    if wanted.inferred is not None:
        values.append("inferred" if wanted.inferred else "seen")
    parts = [_safe(value) for value in (cluster, "history", *values)]
    name = "-".join(part for part in parts if part)[:MAX_NAME]
    ends = [end for end in (wanted.since, wanted.until or now) if end is not None]
    return "-".join([name, *(f"{end:%Y%m%dT%H%M%SZ}" for end in ends)])


def _safe(value: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", value)[:MAX_PART].strip("-.")


HOUR = timedelta(hours=1)
Pairs = list[tuple[str, str]]


def timeline_link(cluster: str, view: HistoryView, now: datetime) -> str:
    """The timeline shows elections unless told otherwise, so a search names all kinds."""
    wanted = view.wanted
    names = [wanted.namespace or "", wanted.lease or ""]
    text = "/".join(names) if all(names) else "".join(names) or wanted.text
    searches = bool(text or wanted.holder)
    kinds = wanted.kind or (tuple(kind.value for kind in Kind) if searches else ())
    query = [*_stretch(view, now), ("q", text), ("holder", wanted.holder or "")]
    query += [("kind", kind) for kind in kinds]
    return f"{reverse('timeline', args=[cluster])}?{urlencode([q for q in query if q[1]])}"


def ranking_link(cluster: str, view: HistoryView, now: datetime) -> str:
    """Without a beginning, the hour before the end."""
    pairs = _stretch(view, now)
    if pairs[0][0] == "at":
        until = min(now, view.wanted.until or now)
        pairs = [("from", write_moment(until - HOUR)), ("to", write_moment(until))]
    query = [*pairs, *(("kind", kind) for kind in view.wanted.kind)]
    return f"{reverse('stretch', args=[cluster])}?{urlencode([q for q in query if q[1]])}"


def _stretch(view: HistoryView, now: datetime) -> Pairs:
    """A stretch that the timeline cannot draw becomes an instant at its end."""
    wanted: HistoryFilter = view.wanted
    if wanted.since is None and wanted.until is None:
        return [("range", view.range)]
    until = min(now, wanted.until or now)
    since = view.as_of(now).since
    if since is not None and SHORTEST <= until - since <= MAX_RANGE:
        return [("from", write_moment(since)), ("to", write_moment(until))]
    return [("at", write_moment(until))]


FORMATS = ("", "html", "json", "csv", "ndjson")
USUAL_STRIP = timedelta(days=1)
MAX_NAMESPACES = 500  # offered; any other can be typed
CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}

TEMPLATES = ("history/index.html", "history/_rows.html")
TYPED = ("range", "namespace", "lease", "holder", "q", "inferred", "since", "until", "view")


@require_safe
@viewer_required
def history(request: ClusterRequest, cluster: str) -> HttpResponseBase:
    """The matching changes, newest first, as a page or JSON; or streamed as CSV or NDJSON."""
    before = request.GET.get("before") or None
    now = clock.now()
    try:
        answer_as = responses.read_format(request, FORMATS)
        view = read_history_view(request.GET, now)
        limit = number(request.GET, "limit", default=PAGE_SIZE, largest=LARGEST_PAGE)
        if answer_as in CONTENT_TYPES:
            return _stream(request, view.as_of(now), answer_as, now)
        found = find_changes.find(cluster, view.as_of(now), before=before, limit=limit)
    except (BadFilter, BadCursor) as error:
        return _refuse(request, error)
    if answer_as == "json":
        query = view_query(view, format="json", limit=str(limit), before=found.older or "")
        url = request.build_absolute_uri(f"{request.path}?{query}") if found.older else None
        items = [export.as_item(change) for change in found.changes]
        return responses.items(items, total=found.total, next_url=url, now=now)
    board = history_board(
        request.path,
        request.GET,
        view,
        total=found.total,
        exact=found.exact,
        older=found.older,
        before=before,
    )
    feed_seq, changes = with_unwritten(cluster, found.changes)
    shown = changes if board["newest"] and board["plain"] else found.changes
    context: dict[str, Any] = {
        "board": board,
        "lines": signed_lines(with_known_causes(cluster, shown), now, request.user),
        "strip": _strip(request, view, now),
        "timeline_url": timeline_link(cluster, view, now),
        "ranking_url": ranking_link(cluster, view, now),
        "namespaces": request.cluster.store.namespaces()[:MAX_NAMESPACES],
        "limit": limit,
        "feed_seq": feed_seq,
    }
    return responses.page(request, *TEMPLATES, context, query=view_query(view, before=before or ""))


def _strip(request: ClusterRequest, view: HistoryView, now: datetime) -> dict[str, Any]:
    """Count the matching changes over the chosen stretch, or over the last day."""
    wanted = view.as_of(now)
    until = min(now, wanted.until or now)
    since = max(wanted.since or until - USUAL_STRIP, until - MAX_RANGE)
    steps = strip_of(min(since, until), until)
    cluster = request.cluster.name
    counts = density(cluster, wanted, steps.since, steps.step, steps.steps, now=now)

    def url(start: datetime, end: datetime) -> str:
        inside = msgspec.structs.replace(view.wanted, since=start, until=end)
        narrower = msgspec.structs.replace(view, wanted=inside, range="")
        return f"{request.path}?{view_query(narrower)}"

    anything = msgspec.structs.replace(wanted, since=None, until=None) == HistoryFilter()
    what = "change" if anything else "matching change"
    return strip_view(
        counts,
        steps.since,
        steps.step,
        now=now,
        url=url,
        length=until - since,
        what=what,
        blind=unwatched_times(cluster, since=since, until=until, now=now),
    )


def _refuse(request: ClusterRequest, refused: BadFilter | BadCursor) -> HttpResponse:
    error, query = str(refused), request.GET
    answer_as = query.get("format") or "html"
    # A person who asks for a file from a form gets the form back.
    by_form = answer_as in CONTENT_TYPES and "text/html" in request.headers.get("Accept", "")
    if answer_as != "html" and not by_form:
        return responses.json({"error": error}, status=400)
    everything = HistoryView(wanted=HistoryFilter())
    usual = history_board(
        request.path, query, everything, total=0, exact=True, older=None, before=None
    )
    kept: dict[str, Any] = {name: typed(query, name) for name in TYPED}
    for name, allowed in (("change", ChangeType), ("kind", Kind), ("cause", Cause)):
        kept[name] = tuple(one for one in allowed if one in query.getlist(name))
    kept |= chosen(kept["change"], kept["kind"], kept["cause"])
    context = {
        "board": usual | kept,
        "namespaces": request.cluster.store.namespaces()[:MAX_NAMESPACES],
        "error": error,
        "bad": getattr(refused, "parameter", ""),
    }
    return responses.page(request, *TEMPLATES, context, status=400)


def _stream(
    request: ClusterRequest, wanted: HistoryFilter, answer_as: str, now: datetime
) -> StreamingHttpResponse:
    """Stream the changes, oldest first, as `export_history` prints them."""
    cluster = request.cluster.name
    changes = export.changes(cluster, wanted)
    lines = export.as_csv(changes) if answer_as == "csv" else export.ndjson(changes)
    return responses.stream(
        request,
        lines,
        content_type=CONTENT_TYPES[answer_as],
        filename=f"{export_name(cluster, wanted, now)}.{answer_as}",
    )
