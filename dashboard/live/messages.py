"""What is said over the sockets, as values that become JSON. docs/api.md, "Live feed" and "Page
socket" describe them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from dashboard.parts.kept.node_book import Grouping
from leases.domain.changes.change import Change
from leases.domain.connection import Connection
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.history.read.export import as_item, format_moment

MAX_SHOWN = 500

Counts = dict[str, int]


class Show(msgspec.Struct, frozen=True):
    """What a page shows, as it says itself: names per part, the last change it has and how it wants
    later ones (as lines, as rows, or only their number), groups of shared regions, the query of its
    list, if it has one, and how its picture is grouped.
    """

    show: dict[str, list[str]] = {}
    feed: int | None = None
    feed_as: Literal["line", "row", "number"] = "line"
    groups: list[str] = []
    query: str | None = None
    field: Grouping | None = None


class BadMessage(ValueError):
    """A page sent something that is not a Show."""


_decode_show = msgspec.json.Decoder(Show).decode


def read_show(text: str) -> Show:
    """Raises BadMessage, which says what is wrong."""
    try:
        show = _decode_show(text)
    except msgspec.DecodeError as error:
        raise BadMessage(
            f"A page says what it shows as {{'show': {{part: [names]}}}}: {error}"
        ) from error
    if sum(len(names) for names in show.show.values()) > MAX_SHOWN:
        raise BadMessage(f"A page may show {MAX_SHOWN} Leases at most.")
    return show


def read_name(text: str) -> ObjectName:
    namespace, _, name = text.partition("/")
    return ObjectName(namespace, name)


def flatten(counts: dict[Kind, dict[Phase, int]]) -> Counts:
    """Counts per phase, of all, and of elections."""
    flat: Counts = {phase.value: 0 for phase in Phase}
    for phases in counts.values():
        for phase, number in phases.items():
            flat[phase.value] += number
    flat["total"] = sum(flat.values())
    flat["elections"] = sum(counts.get(Kind.ELECTION, {}).values())
    return flat


def flatten_all(counts: dict[Kind, dict[Phase, int]]) -> Counts:
    """The same, and each kind by itself: `election`, `election.held`."""
    flat = flatten(counts)
    for kind, phases in counts.items():
        flat[kind.value] = sum(phases.values())
        flat |= {f"{kind.value}.{phase.value}": number for phase, number in phases.items()}
    return flat


def connection_item(
    connection: Connection, *, now: datetime, events_per_second: float, problem: str | None
) -> dict[str, Any]:
    """Where the watch stands, for the live pill, and the moment of what it knows (`as_of`);
    `problem` is what history has, for its band."""
    return {
        "state": connection.state.value,
        "since": connection.since.timestamp(),
        "as_of": connection.as_of(now).timestamp(),
        "detail": connection.detail,
        "behind_seconds": connection.behind_seconds,
        "events_per_second": round(events_per_second, 1),
        "problem": problem or "",
    }


def changes_message(*, seq: int, now: datetime, changes: tuple[Change, ...], counts: Counts) -> str:
    """One frame of the public feed."""
    message = {
        "seq": seq,
        "now": format_moment(now),
        "changes": [as_item(change) for change in changes],
        "counts": counts,
    }
    return msgspec.json.encode(message).decode()
