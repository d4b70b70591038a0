"""The History page: filter changes, page back in time, export."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.http import HttpResponseBase, QueryDict
from django.views.decorators.http import require_safe

from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.board import running_board
from dashboard.lists.controls import Chip, ListLinks
from dashboard.lists.declaration import FoundRows, List
from dashboard.lists.url_parameters import BadFilter, for_input, write_moment
from dashboard.parts.across import offered_namespaces
from dashboard.parts.cause_words import CAUSE_WORDS
from dashboard.parts.change_sentence import WORDS, signed_lines, with_known_causes, with_unwritten
from dashboard.parts.changes_strip import strip_of, strip_view
from dashboard.parts.formatting import capitalized, counted, shortened, span_of
from dashboard.parts.names import cluster_path
from dashboard.parts.page_links import LINES, TABLE, HistoryState
from dashboard.parts.time_range import MAX_RANGE, RANGES, SHORTEST
from dashboard.watched_cluster import WatchedCluster
from leases.domain.change import Change, ChangeType
from leases.domain.incident import Cause
from leases.domain.kind import Kind
from leases.history import export, find_changes
from leases.history.change_counts import density
from leases.history.find_changes import BadCursor
from leases.history.indexed_search import HistoryFilter
from leases.history.watched_spans import unwatched_times

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
SAID = {
    "namespace": "namespace is", "lease": "lease is", "holder": "holder is",
    "q": "a name or holder contains", "inferred": "inferred is", "since": "since",
    "until": "until",
}  # fmt: skip
VIEW_LABELS = {TABLE: "Table", LINES: "Sentences"}


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


def _says(wanted: HistoryState) -> str:
    """The filter in words, or ""."""
    said = [RANGE_LABELS[wanted.range]] if wanted.range else []
    if wanted.change:
        said.append(f"change is {' or '.join(wanted.change)}".replace("_", " "))
    if wanted.kind:
        said.append(f"kind is {' or '.join(wanted.kind)}")
    if wanted.cause:
        said.append(f"cause is {' or '.join(CAUSE_WORDS[Cause(one)] for one in wanted.cause)}")
    said += [
        f"{SAID[name]} {shortened(value, MAX_SAID)}"
        for name, value in wanted.pairs()
        if name in SAID
    ]
    return capitalized(for_input(", ".join(said)))


MAX_PART = 40  # characters of one value
MAX_NAME = 180  # a file name has 255 bytes at most, with its ending


def export_name(cluster: str, wanted: HistoryFilter, now: datetime) -> str:
    """Such as `prod-history-expired-kube-scheduler-20261120T0300Z-20261120T0330Z`.

    An export without an end ends now. Any name is safe: other characters become a dash.
    """
    values = [*wanted.change, *wanted.kind, *wanted.cause]
    values += filter(None, (wanted.namespace, wanted.lease, wanted.holder, wanted.text))
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


def timeline_link(cluster: str, wanted: HistoryState, now: datetime) -> str:
    """The timeline shows elections unless told otherwise, so a search names all kinds."""
    names = [wanted.namespace or "", wanted.lease or ""]
    text = "/".join(names) if all(names) else "".join(names) or wanted.text
    searches = bool(text or wanted.holder)
    kinds = wanted.kind or (tuple(kind.value for kind in Kind) if searches else ())
    query = [*stretch_of(wanted, now), ("q", text), ("holder", wanted.holder or "")]
    query += [("kind", kind) for kind in kinds]
    return f"{cluster_path('timeline', cluster)}?{urlencode([q for q in query if q[1]])}"


def ranking_link(cluster: str, wanted: HistoryState, now: datetime) -> str:
    """Without a beginning, the hour before the end."""
    pairs = stretch_of(wanted, now)
    if pairs[0][0] == "at":
        until = min(now, wanted.until or now)
        pairs = [("from", write_moment(until - HOUR)), ("to", write_moment(until))]
    query = [*pairs, *(("kind", kind) for kind in wanted.kind)]
    return f"{cluster_path('stretch', cluster)}?{urlencode([q for q in query if q[1]])}"


def stretch_of(wanted: HistoryState, now: datetime) -> Pairs:
    """A stretch that the timeline cannot draw becomes an instant at its end."""
    if wanted.since is None and wanted.until is None:
        return [("range", wanted.range)]
    until = min(now, wanted.until or now)
    since = wanted.as_of(now).since
    if since is not None and SHORTEST <= until - since <= MAX_RANGE:
        return [("from", write_moment(since)), ("to", write_moment(until))]
    return [("at", write_moment(until))]


USUAL_STRIP = timedelta(days=1)
NOTHING = find_changes.ChangePage([], None, 0, exact=True)


class History(List[HistoryState, Change]):
    """The matching changes: pages are the newest first, files the oldest first."""

    name = "history"
    reads = HistoryState
    templates = ("history/index.html", "history/_rows.html")
    files = ("csv", "ndjson")
    fields = export.FIELDS
    shows_now = True
    forms_ask_files = True
    _settled = 0  # the feed's number up to which the rows have all

    @cached_property
    def filter(self) -> HistoryFilter:
        return self.wanted.as_of(self.now)

    @property
    def links(self) -> ListLinks:
        """Each page has the usual size, and begins at the newest change."""
        usual = self.wanted.replace(before="", limit=HistoryState().limit)
        return ListLinks(self.request.path, usual)

    @cached_property
    def clusters(self) -> Sequence[WatchedCluster]:
        """Those whose changes are wanted."""
        return (self.request.cluster,)

    @property
    def _names(self) -> list[str]:
        return [one.name for one in self.clusters]

    def find(self) -> FoundRows[Change]:
        before, limit = self.wanted.before or None, self.wanted.limit
        if len(self._names) == 1:
            self._settled = running_board().feeds[self._names[0]].settled_seq()
        try:
            found = find_changes.find(self._names, self.filter, before=before, limit=limit)
        except BadCursor as error:
            raise BadFilter(str(error)) from error
        return FoundRows(found.changes, found.total, older=found.older or "", more=found)

    def every(self) -> Iterator[Change]:
        """As `export_history` prints them."""
        return export.changes(self._names, self.filter)

    def file_name(self) -> str:
        return export_name(self.request.cluster.name, self.filter, self.now)

    def item(self, row: Change) -> dict[str, Any]:
        return export.as_item(row)

    def cells(self, row: Change) -> dict[str, Any]:
        item = self.item(row)
        return item | {"fields": " ".join(item["fields"])}

    def query(self) -> str:
        return self.wanted.replace(limit=HistoryState().limit).query()

    def next_url(self, found: FoundRows[Change]) -> str | None:
        end = {"format": "json", "limit": self.wanted.limit, "before": found.older}
        query = urlencode([*self.links.wanted.pairs(), *end.items()])
        path = f"{self.request.path}?{query}"
        return self.request.build_absolute_uri(path) if found.older else None

    def page(self, found: FoundRows[Change]) -> dict[str, Any]:
        cluster, now = self.request.cluster.name, self.now
        feed_seq, shown, older = self._settled, list(found.rows), found.older
        if self._follows:
            feed_seq, shown = with_unwritten(cluster, shown, self.wanted.limit)
            older = find_changes.older_than(shown, found.more, self.wanted.limit)
        return {
            "board": self._board(msgspec.structs.replace(found, older=older)),
            "lines": signed_lines(with_known_causes(shown), now, self.request.user),
            "strip": self._strip(),
            "timeline_url": timeline_link(cluster, self.wanted, now),
            "ranking_url": ranking_link(cluster, self.wanted, now),
            "namespaces": offered_namespaces(self.clusters),
            "limit": self.wanted.limit,
            "feed_seq": feed_seq,
        }

    @property
    def _is_newest(self) -> bool:
        return not self.wanted.before and self.wanted.until is None

    @property
    def _follows(self) -> bool:
        """Whether every change belongs on top."""
        return self._is_newest and self.filter == HistoryFilter()

    def refused(self) -> dict[str, Any]:
        query = self.request.GET
        kept: dict[str, Any] = dict(self.reads.typed(query))
        for name, allowed in (("change", ChangeType), ("kind", Kind), ("cause", Cause)):
            kept[name] = tuple(one for one in allowed if one in query.getlist(name))
        kept |= chosen(kept["change"], kept["kind"], kept["cause"])
        usual = self._board(FoundRows((), 0, more=NOTHING))
        return {"board": usual | kept, "namespaces": offered_namespaces(self.clusters)}

    def _board(self, found: FoundRows[Change]) -> dict[str, Any]:
        """The controls of the page."""
        wanted, links, total = self.wanted, self.links, counted(found.total, "change")
        return {
            **wanted.texts(),
            **CHOICES,
            **chosen(wanted.change, wanted.kind, wanted.cause),
            "views": [links.chip(label, "view", name) for name, label in VIEW_LABELS.items()],
            "says": _says(wanted),
            "ends_early": wanted.ends_early(self.request.GET, self.now),
            "total": total if found.more.exact else f"more than {total}",
            "range": wanted.range,
            "view": wanted.view,
            "newest": self._is_newest,
            "follows": self._follows,
            "exact": exact_names(links.path, self.request.GET),
            "older_url": links.url(before=found.older) if found.older else "",
            "newest_url": links.url() if wanted.before else "",
            "clear_url": links.path,
            "csv_url": links.url_as("csv", view=TABLE),
            "ndjson_url": links.url_as("ndjson", view=TABLE),
        }

    def _strip(self) -> dict[str, Any]:
        """Count the matching changes over the chosen stretch, or over the last day."""
        cluster, now, links = self.request.cluster.name, self.now, self.links
        until = min(now, self.filter.until or now)
        since = max(self.filter.since or until - USUAL_STRIP, until - MAX_RANGE)
        steps = strip_of(min(since, until), until)
        counts = density(cluster, self.filter, steps.since, steps.step, steps.steps, now=now)
        whole = msgspec.structs.replace(self.filter, since=None, until=None)
        return strip_view(
            counts,
            steps.since,
            steps.step,
            now=now,
            url=lambda start, end: links.url(since=start, until=end, range=""),
            length=until - since,
            what="change" if whole == HistoryFilter() else "matching change",
            blind=unwatched_times(cluster, since=since, until=until, now=now),
        )


@require_safe
@viewer_required
def history(request: ClusterRequest, _cluster: str) -> HttpResponseBase:
    """The matching changes as a page or JSON, or streamed as CSV or NDJSON."""
    return History(request).answer()
