"""The History page around its rows: what is chosen, where older changes are, and what an empty list
says.
"""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec

from dashboard.moment_text import write_moment
from dashboard.presenters.change import WORDS
from leases.domain.kind import Kind
from leases.history.streams import HistoryFilter


class HistoryBoard(msgspec.Struct, frozen=True, kw_only=True):
    """The choices of the form as text, and the links around the list."""

    change: tuple[str, ...]
    kind: tuple[str, ...]
    namespace: str
    lease: str
    holder: str
    inferred: str
    since: str
    until: str
    says: str
    total: int
    older_url: str
    newest_url: str
    clear_url: str
    csv_url: str
    ndjson_url: str

    @property
    def changes(self) -> list[tuple[str, str]]:
        return [(change.value, word) for change, word in WORDS.items()]

    @property
    def kinds(self) -> list[str]:
        return [kind.value for kind in Kind]


def history_query(wanted: HistoryFilter, **more: str) -> str:
    """The query string of a filter."""
    pairs = [("change", word) for word in wanted.change]
    pairs += [("kind", word) for word in wanted.kind]
    pairs += [(name, value) for name, value in _texts(wanted).items() if value]
    pairs += more.items()
    return urlencode(pairs)


def history_board(
    path: str, wanted: HistoryFilter, *, total: int, older: str | None, before: str | None
) -> HistoryBoard:
    """Everything around the rows; `path` is the page's own, `older` and `before` are cursors."""
    query = history_query(wanted)
    texts = _texts(wanted)
    return HistoryBoard(
        change=tuple(wanted.change),
        kind=tuple(wanted.kind),
        **texts,
        says=_says(wanted, texts),
        total=total,
        older_url=f"{path}?{history_query(wanted, before=older)}" if older else "",
        newest_url=(f"{path}?{query}" if query else path) if before else "",
        clear_url=path,
        csv_url=f"{path}?{history_query(wanted, format='csv')}",
        ndjson_url=f"{path}?{history_query(wanted, format='ndjson')}",
    )


def _texts(wanted: HistoryFilter) -> dict[str, str]:
    return {
        "namespace": wanted.namespace or "",
        "lease": wanted.lease or "",
        "holder": wanted.holder or "",
        "inferred": "" if wanted.inferred is None else str(wanted.inferred).lower(),
        "since": write_moment(wanted.since),
        "until": write_moment(wanted.until),
    }


def _says(wanted: HistoryFilter, texts: dict[str, str]) -> str:
    said = []
    if wanted.change:
        said.append(f"change is {' or '.join(wanted.change)}")
    if wanted.kind:
        said.append(f"kind is {' or '.join(wanted.kind)}")
    said += [f"{name} is {value}" for name, value in texts.items() if value]
    text = ", ".join(said).replace("_", " ")
    return text[:1].upper() + text[1:]
