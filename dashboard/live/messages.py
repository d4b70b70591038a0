"""The messages of the sockets, as values that become JSON: docs/api.md says what they mean."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from dashboard.pages.incidents.list import incident_item
from dashboard.parts.key_figures import counted_kpis, unexcused
from dashboard.watched_cluster import Grouping
from leases.domain.change import Change
from leases.domain.incident import Incident
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.watched_times import Connection
from leases.history.export import as_item
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked
from leases.wire.microtime import format_microtime

MAX_SHOWN = 500

Counts = dict[str, int]
Message = str | bytes  # of a socket: JSON, or a picture of all heartbeats


class Show(msgspec.Struct, frozen=True):
    """What a page reports that it shows: names per part; its last change, and whether it wants
    later ones as lines, as rows or as a number; groups of shared regions; the query of its list;
    how its node grid is grouped; whether it has the menu of clusters; how often the server's clock
    had jumped when its moments were drawn; the stamp of its drawing, and that of its list, which
    is older where only parts around the list were drawn again.
    """

    show: dict[str, list[str]] = {}
    feed: int | None = None
    feed_as: Literal["line", "row", "number"] = "line"
    groups: list[str] = []
    query: str | None = None
    field: Grouping | None = None
    clusters: bool = False
    jumps: int | None = None
    drawn: str | None = None
    listed: str | None = None


class BadShow(ValueError):
    """The page did not send a Show."""


_decode_show = msgspec.json.Decoder(Show).decode


def read_show(text: str) -> Show:
    """Raises BadShow."""
    try:
        show = _decode_show(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise BadShow(
            f"A page says what it shows as {{'show': {{part: [names]}}}}: {error}"
        ) from error
    if sum(len(names) for names in show.show.values()) > MAX_SHOWN:
        raise BadShow(f"A page may show {MAX_SHOWN} Leases at most.")
    return show


def read_name(text: str) -> ObjectName:
    namespace, _, name = text.partition("/")
    return ObjectName(namespace, name)


def flatten(counts: dict[Kind, dict[Phase, int]]) -> Counts:
    """Count the Leases per phase, in total, and those of elections."""
    flat: Counts = {phase.value: 0 for phase in Phase}
    for phases in counts.values():
        for phase, number in phases.items():
            flat[phase.value] += number
    flat["total"] = sum(flat.values())
    flat["elections"] = sum(counts.get(Kind.ELECTION, {}).values())
    return flat


def flatten_all(counts: dict[Kind, dict[Phase, int]], excused: Sequence[Tracked] = ()) -> Counts:
    """Add the counts per kind: `election`, `election.held`; those of a phase that nothing excuses:
    `unexcused.vacant`; and `abandoned`.
    """
    flat = flatten(counts)
    for phase, number in unexcused(counts, excused).items():
        flat[f"unexcused.{phase}"] = number
    flat["abandoned"] = sum(one.abandoned for one in excused)
    for kind, phases in counts.items():
        flat[kind.value] = sum(phases.values())
        flat |= {f"{kind.value}.{phase.value}": number for phase, number in phases.items()}
    return flat


def connection_item(
    connection: Connection, *, now: datetime, events_per_second: float, problem: str | None
) -> dict[str, Any]:
    """The state of the watch, and the moment up to which its data is known (`as_of`); `problem` is
    that of history.
    """
    told = connection.shown(now)
    return {
        "state": told.state.value,
        "since": told.since.timestamp(),
        "as_of": told.as_of(now).timestamp(),
        "detail": told.detail,
        "behind_seconds": connection.behind_seconds,
        "events_per_second": round(events_per_second, 1),
        "problem": problem or "",
    }


def changes_message(
    *,
    seq: int,
    now: datetime,
    changes: Sequence[Change],
    counts: Counts,
    incidents: Sequence[Incident] = (),
) -> str:
    """One frame of the public feed. Only a frame about incidents has `incidents`."""
    message: dict[str, Any] = {
        "seq": seq,
        "now": format_microtime(now),
        "changes": [as_item(change) for change in changes],
        "counts": counts,
    }
    if incidents:
        message["incidents"] = [
            incident_item(one, one.change_count) | {"part_of": one.part_of} for one in incidents
        ]
    return msgspec.json.encode(message).decode()


Figure = tuple[str, str, bool]  # number, caption, whether it is bad
Figures = dict[str, Figure]


def figures_of(store: Store) -> Figures:
    """Key figures by name, as the whole page shows them; none before the first list."""
    if not store.known:
        return {}
    return {
        kpi.figure: ("".join(number for number, _ in kpi.value), kpi.detail, kpi.bad)
        for kpi in counted_kpis(store.cluster, store.counts(), store.excused())
    }
