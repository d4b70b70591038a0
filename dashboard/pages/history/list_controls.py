"""The controls of the History page: the choices, the pager, and the words for an empty list."""

from __future__ import annotations

import msgspec

from dashboard.pages.history.filter import LINES, TABLE, HistoryView
from dashboard.parts.change_sentence import WORDS
from dashboard.parts.formatting import capitalized, counted, shortened, span_of
from dashboard.parts.frame.list_controls import Chip
from dashboard.parts.query.history_url import filter_texts, history_query
from dashboard.parts.query.time_range import RANGES
from dashboard.parts.query.url_parameters import for_input
from leases.domain.kind import Kind
from leases.history.read.indexed_search import HistoryFilter

RANGE_LABELS = {"": "All times"} | {
    name: f"Last {span_of(length)}" for name, length in RANGES.items()
}
MAX_SAID = 80  # characters of a value in the sentence that an empty list says
VIEW_LABELS = {TABLE: "Table", LINES: "Sentences"}


class HistoryBoard(msgspec.Struct, frozen=True, kw_only=True):
    """The values of the form, and the links around the list.

    `newest`: the list begins with the newest changes. `plain`: no filter is set.
    """

    range: str
    change: tuple[str, ...]
    kind: tuple[str, ...]
    namespace: str
    lease: str
    holder: str
    inferred: str
    since: str
    until: str
    view: str
    views: tuple[Chip, ...]
    says: str
    total: str
    newest: bool
    plain: bool
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
    def changes(self) -> list[tuple[str, str]]:
        return [(change.value, word) for change, word in WORDS.items()]

    @property
    def kinds(self) -> list[str]:
        return [kind.value for kind in Kind]


def view_query(state: HistoryView, /, **more: str) -> str:
    """The query string of a state of the page, without default values."""
    shape = "" if state.view == TABLE else state.view
    return history_query(state.wanted, **({"range": state.range, "view": shape} | more))


def history_board(
    path: str, view: HistoryView, *, total: int, exact: bool, older: str | None, before: str | None
) -> HistoryBoard:
    """Make the controls; `path` is the page's own, `older` and `before` are cursors."""

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
    said += [f"{name} is {shortened(value, MAX_SAID)}" for name, value in texts.items() if value]
    return capitalized(for_input(", ".join(said)))
