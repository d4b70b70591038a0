"""The text of a panel in which no Lease is in trouble.

Only Leases that somebody holds are good news; no Leases, no holders and no connection are neutral.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dashboard.parts.formatting import counted
from dashboard.parts.key_figures import KIND_WORDS, Counts, of_kind
from leases.domain.connection import ConnectionState
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.tracking.store import Store

_HELD = (Phase.HELD, Phase.UNTIMED)
_WORDS = {Kind.HEARTBEAT: "in time"}


class Calm(msgspec.Struct, frozen=True):
    """The text of one empty panel. `css` is a state only where the news is good."""

    title: str
    text: str
    icon: str
    css: str = ""


def calm(
    store: Store,
    counts: Counts,
    *,
    kinds: Sequence[Kind] = tuple(Kind),
    title: str = "Nothing needs attention",
) -> Calm:
    """`title` is the good news; `counts` are the numbers that the page shows beside it."""
    connection = store.connection
    if connection.state is ConnectionState.REFUSED:
        return Calm("No access", connection.detail, "i-unplug")
    if connection.state is not ConnectionState.LIVE:
        usual = "There is no connection to the cluster yet, so its Leases are not known."
        return Calm("Not connected", connection.detail or usual, "i-unplug")
    looked = {kind: counts.get(kind, {}) for kind in kinds}
    total = sum(sum(phases.values()) for phases in looked.values())
    if not total:
        return _nothing_there(store.cluster, counts, kinds)
    held = {kind: sum(phases.get(one, 0) for one in _HELD) for kind, phases in looked.items()}
    if not any(held.values()):
        vacant = sum(phases.get(Phase.VACANT, 0) for phases in looked.values())
        what = counted(total, "Lease")
        return Calm("Nobody holds any of them", f"{what}, {vacant:,} vacant.", "st-vacant")
    return Calm(title, _looked_at(held, total), "st-held", "is-held")


def _nothing_there(cluster: str, counts: Counts, kinds: Sequence[Kind]) -> Calm:
    if not sum(sum(phases.values()) for phases in counts.values()):
        text = "The list is complete and empty."
        return Calm(f"There are no Leases in {cluster}", text, "st-vacant")
    if len(kinds) == 1:
        many = KIND_WORDS[kinds[0]][1]
        return Calm(f"There are no {many}", f"No Lease in {cluster} is one.", "st-vacant")
    return Calm("No other Leases", "There is nothing else to watch.", "st-vacant")


def _looked_at(held: Mapping[Kind, int], total: int) -> str:
    """`12 elections held and 3,000 heartbeats in time. 3,020 Leases are watched.`"""
    largest = sorted(held, key=lambda kind: (kind is not Kind.ELECTION, -held[kind]))
    said = [f"{of_kind(held[kind], kind)} {_WORDS.get(kind, 'held')}" for kind in largest]
    shown = [words for words, kind in zip(said, largest, strict=True) if held[kind]][:2]
    return f"{' and '.join(shown)}. {total:,} {'Lease is' if total == 1 else 'Leases are'} watched."
