"""The controls of the History page: the choices, the pager, and the words for an empty list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import QueryDict

from dashboard.pages.history.filter import LINES, TABLE, HistoryView
from dashboard.parts.cause_words import CAUSE_WORDS
from dashboard.parts.change_sentence import WORDS
from dashboard.parts.formatting import capitalized, counted, shortened, span_of
from dashboard.parts.frame.list_controls import Chip
from dashboard.parts.query.history_url import filter_texts, history_query
from dashboard.parts.query.time_range import RANGES
from dashboard.parts.query.url_parameters import for_input
from leases.domain.cause.incident import Cause
from leases.domain.changes.change import ChangeType
from leases.domain.kind import Kind
from leases.history.read.indexed_search import HistoryFilter

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
