"""The key figures of a cluster: each a number, what it is made of, and the list it counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from urllib.parse import urlencode

import msgspec
from django.urls import reverse

from dashboard.presenters.words import age, counted, thousands
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.history.activity import HOLDER_CHANGES, Activity
from leases.tracking.tracked import Tracked

Counts = Mapping[Kind, Mapping[Phase, int]]

KIND_WORDS = {
    Kind.ELECTION: ("election", "elections"),
    Kind.HEARTBEAT: ("heartbeat", "heartbeats"),
    Kind.IDENTITY: ("identity", "identities"),
    Kind.LOCK: ("lock", "locks"),
    Kind.UNKNOWN: ("of unknown kind", "of unknown kind"),
}
DAY = timedelta(days=1)


class Kpi(msgspec.Struct, frozen=True, kw_only=True):
    """`value` is numbers with their units; `count` names the number of a live frame that replaces
    it, or "".
    """

    label: str
    value: tuple[tuple[str, str], ...]
    detail: str
    url: str
    phase: str = ""
    bad: bool = False
    count: str = ""


class Day(msgspec.Struct, frozen=True):
    """The last 24 h of all elections: changes of holder, and seconds without one."""

    changes: int
    gap_seconds: float


def of_kind(number: int, kind: Kind) -> str:
    return counted(number, *KIND_WORDS[kind])


def by_phase(counts: Counts, phase: Phase) -> int:
    return sum(phases.get(phase, 0) for phases in counts.values())


def last_day(activity: Activity, elections: Sequence[Tracked], now: datetime) -> Day:
    """Sum up a day from what happened and from the gaps that are open now."""
    start = now - DAY
    changes = sum(activity.of_kind(Kind.ELECTION, HOLDER_CHANGES, now))
    still_open = sum(
        (now - max(t.gap_since, start)).total_seconds() for t in elections if t.gap_since
    )
    return Day(changes, activity.gap_seconds(Kind.ELECTION, now) + still_open)


def kpis(cluster: str, counts: Counts, day: Day, *, known: bool = True) -> tuple[Kpi, ...]:
    """The strip, from left to right. Not `known`: no list was read yet, so nothing was counted."""
    total = sum(sum(phases.values()) for phases in counts.values())
    elections = sum(counts.get(Kind.ELECTION, {}).values())
    leases = reverse("leases", args=[cluster])
    history = reverse("history", args=[cluster])
    first = Kpi(
        label="Leases",
        value=((thousands(total), ""),),
        detail=of_kind(elections, Kind.ELECTION),
        url=leases,
        count="total",
    )
    phases = (Phase.HELD, Phase.LATE, Phase.EXPIRED, Phase.VACANT)
    holder_changes = "&".join(f"change={change.value}" for change in HOLDER_CHANGES)
    now = [first, *(_phase(leases, counts, phase, total) for phase in phases)]
    return (
        *(now if known else map(unread, now)),
        Kpi(
            label="Holder changes, 24 h",
            value=((thousands(day.changes), ""),),
            detail="of elections",
            url=f"{history}?kind=election&{holder_changes}",
        ),
        Kpi(
            label="Without holder, 24 h",
            value=_units(age(day.gap_seconds)) if day.gap_seconds else (("0", "s"),),
            detail="elections, summed",
            url=f"{history}?kind=election&change=expired&change=released",
        ),
    )


def unread(kpi: Kpi) -> Kpi:
    """The same of a cluster of which no list was read yet: nothing was counted, not even none."""
    return msgspec.structs.replace(
        kpi, value=(("?", ""),), detail="not read yet", phase="", count="", bad=False
    )


def _phase(leases: str, counts: Counts, phase: Phase, total: int) -> Kpi:
    number = by_phase(counts, phase)
    bad = number > 0 and phase in (Phase.LATE, Phase.EXPIRED)
    if phase is Phase.VACANT:  # a free lock is in order; an election without a holder is not
        bad = counts.get(Kind.ELECTION, {}).get(phase, 0) > 0
    return Kpi(
        label=phase.value.capitalize(),
        value=((thousands(number), ""),),
        detail=_share(number, total) if phase is Phase.HELD else _made_of(counts, phase),
        url=f"{leases}?{urlencode({'phase': phase.value})}",
        phase=phase.value if total else "",
        bad=bad,
        count=phase.value,
    )


def _share(number: int, total: int) -> str:
    """Rounded down, so that 100 % means all."""
    return f"{number * 10000 // total / 100:g} %" if total else "none yet"


def _made_of(counts: Counts, phase: Phase) -> str:
    numbers = {kind: phases.get(phase, 0) for kind, phases in counts.items()}
    largest = sorted(((n, k) for k, n in numbers.items() if n), key=lambda pair: -pair[0])
    return ", ".join(of_kind(n, k) for n, k in largest[:2]) or "none"


def _units(text: str) -> tuple[tuple[str, str], ...]:
    words = text.split()
    return tuple(zip(words[::2], words[1::2], strict=True))
