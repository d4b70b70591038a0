"""The controls of the History page: the choices, the pager, and the words for an empty list."""

from __future__ import annotations

import msgspec
from django.http import QueryDict

from dashboard.pages.history.filter import LINES, TABLE, HistoryView
from dashboard.parts.change_sentence import WORDS
from dashboard.parts.formatting import capitalized, counted, shortened, span_of
from dashboard.parts.frame.list_controls import Chip
from dashboard.parts.query.history_url import filter_texts, history_query
from dashboard.parts.query.time_range import RANGES
from dashboard.parts.query.url_parameters import for_input
from leases.domain.changes.change import ChangeType
from leases.domain.kind import Kind
from leases.history.read.indexed_search import HistoryFilter

RANGE_LABELS = {"": "All times"} | {
    name: f"Last {span_of(length)}" for name, length in RANGES.items()
}
MAX_SAID = 80  # characters of a value in the sentence that an empty list says
SAID = {"q": "a name or holder contains", "since": "since", "until": "until"}
VIEW_LABELS = {TABLE: "Table", LINES: "Sentences"}


class HistoryBoard(msgspec.Struct, frozen=True, kw_only=True):
    """The values of the form, and the links around the list.

    `newest`: the list begins with the newest changes. `plain`: no filter is set. `exact`: the whole
    names that a link asked for, each with the way to drop it.
    """

    range: str
    change: tuple[str, ...]
    kind: tuple[str, ...]
    namespace: str
    lease: str
    holder: str
    q: str
    inferred: str
    since: str
    until: str
    view: str
    views: tuple[Chip, ...]
    says: str
    total: str
    newest: bool
    plain: bool
    exact: tuple[Chip, ...]
    older_url: str
    newest_url: str
    clear_url: str
    csv_url: str
    ndjson_url: str

    @property
    def rare(self) -> bool:
        """Whether one of the rare, folded filters is set."""
        return bool(self.kind or self.inferred or self.since or self.until)

    @property
    def ranges(self) -> list[tuple[str, str]]:
        return list(RANGE_LABELS.items())

    @property
    def change_label(self) -> str:
        """The chosen kinds of change in a few words."""
        chosen = [WORDS[ChangeType(change)] for change in self.change]
        return ", ".join(chosen) if len(chosen) < 3 else f"{len(chosen)} kinds of change"

    @property
    def changes(self) -> list[tuple[str, str]]:
        return [(change.value, word) for change, word in WORDS.items()]

    @property
    def kinds(self) -> list[str]:
        return [kind.value for kind in Kind]


def view_query(state: HistoryView, /, **more: str) -> str:
    """The query string of a state of the page, without default values."""
    shape = "" if state.view == TABLE else state.view
    return history_query(state.wanted, **({"range": state.range, "view": shape} | more))


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
) -> HistoryBoard:
    """Make the controls of the page at `path` and `query`; `older` and `before` are cursors."""

    def url(**more: str) -> str:
        query = view_query(view, **more)
        return f"{path}?{query}" if query else path

    wanted, texts = view.wanted, filter_texts(view.wanted)
    return HistoryBoard(
        range=view.range,
        change=tuple(wanted.change),
        kind=tuple(wanted.kind),
        **(texts | {"holder": for_input(texts["holder"])}),
        view=view.view,
        views=tuple(
            Chip(name, label, url(view="" if name == TABLE else name), name == view.view)
            for name, label in VIEW_LABELS.items()
        ),
        says=_says(view, texts),
        total=counted(total, "change") if exact else f"more than {counted(total, 'change')}",
        newest=before is None and wanted.until is None,
        plain=wanted == HistoryFilter() and not view.range,
        exact=exact_names(path, query),
        older_url=url(before=older) if older else "",
        newest_url=url() if before else "",
        clear_url=path,
        csv_url=url(format="csv", view=""),
        ndjson_url=url(format="ndjson", view=""),
    )


def _says(view: HistoryView, texts: dict[str, str]) -> str:
    said = [RANGE_LABELS[view.range]] if view.range else []
    if view.wanted.change:
        said.append(f"change is {' or '.join(view.wanted.change)}".replace("_", " "))
    if view.wanted.kind:
        said.append(f"kind is {' or '.join(view.wanted.kind)}")
    said += [
        f"{SAID.get(name, f'{name} is')} {shortened(value, MAX_SAID)}"
        for name, value in texts.items()
        if value
    ]
    return capitalized(for_input(", ".join(said)))
