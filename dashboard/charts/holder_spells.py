"""Draw one holder's terms of any number of Leases on one lane."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from dashboard.charts.time_scale import Scale, percent

NARROW = 0.5  # percent; closer terms are drawn as one


class Spell(msgspec.Struct, frozen=True, kw_only=True):
    """A time with `terms` terms, of which `edges` are the beginnings; x and width in percent."""

    x: float
    width: float
    since: datetime
    until: datetime
    terms: int
    edges: tuple[float, ...]


def spells(terms: Iterable[tuple[datetime, datetime]], scale: Scale) -> tuple[Spell, ...]:
    """The spells of (since, until) terms inside the scale, oldest first; at most 200."""
    inside = sorted(
        (since, until) for since, until in terms if until > scale.since and since < scale.until
    )
    runs: list[list[tuple[datetime, datetime]]] = []
    end = 0.0
    for since, until in inside:
        x = scale.x(since)
        if runs and x - end < NARROW:
            runs[-1].append((since, until))
        else:
            runs.append([(since, until)])
            end = 0.0
        end = max(end, scale.x(until))
    return tuple(_spell(run, scale) for run in runs)


def _spell(run: list[tuple[datetime, datetime]], scale: Scale) -> Spell:
    since, until = run[0][0], max(until for _, until in run)
    x = scale.x(since)
    edges: list[float] = []
    for begun, _ in run:
        edge = scale.x(begun)
        if begun > scale.since and (not edges or edge - edges[-1] >= NARROW):
            edges.append(edge)
    return Spell(
        x=percent(x),
        width=percent(max(NARROW, scale.x(until) - x)),
        since=since,
        until=until,
        terms=len(run),
        edges=tuple(percent(edge) for edge in edges),
    )
