"""One Lease as a row of a table and a tile of the wall, with its phase in words that count on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from dashboard.board import running_board
from dashboard.charts.bars import Sparkline, sparkline
from dashboard.parts.flapping import FlapView, flap_view
from dashboard.parts.formatting import Elapsed, age, elapsed, rough, seconds, thousands, when
from dashboard.parts.names import (
    HolderView,
    ShownName,
    cut_name,
    holder_view,
    lease_url,
    shown_name,
)
from leases.domain.figures import FLAPPING_SEVERITY, TROUBLE, Held, Span, severity
from leases.domain.flapping import Flapping
from leases.domain.kind import Kind
from leases.domain.phase import Clause, Explanation, Phase, late_after
from leases.history.activity import WatchedLately
from leases.tracking.tracked_lease import Tracked

FINE = 99.95  # seconds; a longer time with tenths does not fit into the ring
RING = 188.5  # circumference of the ring, r = 30


class Freshness(msgspec.Struct, frozen=True):
    """`observed` is epoch seconds, `duration` is seconds; `left` and `tick`
    (where late begins) are percent. `age` is that of the last renewal; `duration` counts from an
    edit of it that came `edited` seconds later. It is None for a Lease that cannot run out.
    """

    observed: float
    duration: float | None
    edited: float  # seconds after the last renewal
    age: str
    left: float
    tick: float | None
    ring_offset: float
    countdown: str
    countdown_word: str


def numbers(tracked: Tracked) -> list[float | None]:
    """For a live frame: since when it lasts (epoch s), for how long, and when it is late (s)."""
    return [tracked.observed_at.timestamp(), tracked.lasts_seconds, late_after(tracked)]


def freshness(tracked: Tracked, now: datetime) -> Freshness | None:
    """None for a Lease that nobody holds, or that nobody renewed."""
    if tracked.phase is Phase.VACANT or tracked.renew_time is None:
        return None
    observed, duration, late = numbers(tracked)
    elapsed = max(0.0, (now - tracked.observed_at).total_seconds())
    left = max(0.0, 1 - elapsed / duration) if duration else 0.0
    tick = 100 * (1 - late / duration) if duration and late and late < duration else None
    overdue = elapsed - (duration or 0)
    return Freshness(
        observed=observed or 0.0,
        duration=duration,
        edited=(edited := (tracked.observed_at - tracked.renewed_at).total_seconds()),
        age=age(elapsed + edited),
        left=round(left * 100, 1),
        tick=round(tick, 1) if tick is not None else None,
        ring_offset=round(RING * (1 - left), 1),
        countdown=f"{-overdue:.1f}" if -FINE < overdue < 0 else rough(abs(overdue)),
        countdown_word="overdue" if overdue >= 0 else "s left" if overdue > -FINE else "left",
    )


ABANDONED, MAY_BE_VACANT, FREE = "abandoned", "may be vacant", "free"
FREE_IN_FULL = "A vacant lock is only free, so it counts as no problem."


def excuse_of(tracked: Tracked) -> str:
    """Two words at most, for a row; "" if there is none."""
    if not tracked.excused:
        return FREE if _is_free(tracked) else ""
    return ABANDONED if tracked.abandoned else MAY_BE_VACANT


def excuse_in_full(tracked: Tracked) -> str:
    """A sentence for the page of the Lease."""
    if not tracked.excused:
        return FREE_IN_FULL if _is_free(tracked) else ""
    if tracked.abandoned:
        return "Abandoned: nobody is expected to hold it again, so it counts as no problem."
    return f"It may be vacant: {tracked.lasting.may_be_vacant} said so. It counts as no problem."


def _is_free(tracked: Tracked) -> bool:
    return tracked.phase is Phase.VACANT and tracked.kind is Kind.LOCK


UNKNOWN = "unknown"


def state_of(tracked: Tracked) -> str:
    """The phase to show: `unknown` if the newest write was not understood."""
    return tracked.phase.value if tracked.lasting.not_understood is None else UNKNOWN


def skipped_in_short(tracked: Tracked, now: datetime) -> str:
    """A sentence for a row; empty if the write was understood."""
    state = tracked.lasting.not_understood
    return "" if state is None else f"Its write at {when(state.since, now)} was not understood."


def skipped_in_full(tracked: Tracked, now: datetime) -> str:
    """The sentences for the Lease's page; empty if the write was understood."""
    state = tracked.lasting.not_understood
    if state is None:
        return ""
    first = f"Leaseboard did not understand the write that it saw at {when(state.at, now)}."
    if state.before is None:
        rest = "Nothing of this Lease has been understood yet."
    else:
        rest = "How it stands is not known: what is shown is from before."
    return f"{first} {state.reason} {rest} The next write that can be understood mends this."


class HeldView(msgspec.Struct, frozen=True):
    """How long a term lasts: `length` is the watched time in which it was valid, and counts on from
    `since` (epoch s) while it goes on. Where that is not all of it, `note` says when it began, and
    `began` says it briefly: "since 23:23:55", or "since 24 Nov".
    """

    length: str
    watched: float
    unwatched: float
    since: float | None = None
    began: str = ""
    note: str = ""

    @classmethod
    def of(cls, lasted: Held) -> HeldView:
        nothing = lasted.unwatched and not lasted.watched
        said = NOT_WATCHED if nothing else age(lasted.watched)
        return cls(said, lasted.watched, lasted.unwatched)


NOT_WATCHED = "not watched"
SHOWN = 0.05  # seconds, from which on an age is not 0.0 s


def held_view(
    cluster: str, tracked: Tracked, now: datetime, watched: WatchedLately | None = None
) -> HeldView | None:
    """The present term of a Lease; None if nobody holds it."""
    since = tracked.held_since
    if since is None or tracked.phase is Phase.VACANT:
        return None
    ran_out = tracked.phase_since if tracked.phase is Phase.EXPIRED else None
    return time_since(cluster, since, now, ended=ran_out, watched=watched, lapses=tracked.lapses)


def time_since(
    cluster: str,
    since: datetime,
    now: datetime,
    *,
    ended: datetime | None = None,
    watched: WatchedLately | None = None,
    lapses: Sequence[Span] = (),
) -> HeldView:
    """How long somebody watched a term, up to its end or now, without its `lapses`.

    `watched`: when its cluster was; None: as the running board knows.
    """
    until = ended or now
    if watched is None:
        watched = running_board().feeds[cluster].activity.watched
    lasts = watched.held(since, until, lapses)
    begun = f"since {when(since, now)}"
    expired = [watched.held(*lapse) for lapse in lapses]
    less = [f"{age(lasts.unwatched)} of it not watched"] if lasts.unwatched else []
    lost = sum(one.watched + one.unwatched for one in expired)
    if lost >= SHOWN:
        at_most = "at most " if any(one.unwatched for one in expired) else ""
        less.append(f"{at_most}{age(lost)} of it expired")
    return replace(
        HeldView.of(lasts),
        since=None if ended else round(until.timestamp() - lasts.watched, 3),
        began=begun.partition(f" {since.year} ")[0] if less else "",
        note=", ".join([begun, *less]) if less else "",
    )


class RowView(msgspec.Struct, frozen=True, kw_only=True):
    """`held` is the present term, None if nobody holds it; `spark` shows the changes of the last
    day. `skipped` says that the newest write was not understood; the phase is unknown then.
    `excuse` says why it is no problem that nobody holds it.
    """

    key: str
    namespace: str
    name: str
    shown: ShownName  # without its domain
    domain: str  # the end of `name` that all nodes share
    url: str
    phase: str
    kind: str
    kind_reason: str
    holder: HolderView | None
    held: HeldView | None
    vacant_since: str
    fresh: Freshness | None
    transitions: str
    spark: Sparkline | None = None
    skipped: str = ""
    flap: FlapView | None = None
    excuse: str = ""


def row_view(
    cluster: str,
    tracked: Tracked,
    now: datetime,
    *,
    hours: Sequence[int] = (),
    unwatched: Sequence[str] = (),
    flapping: Flapping | None = None,
    watched: WatchedLately | None = None,
) -> RowView:
    """`hours` counts the day's changes; `unwatched` says how much of each hour nobody watched."""
    key, spec = tracked.key, tracked.lasting.lease.spec
    skipped = skipped_in_short(tracked, now)
    return RowView(
        key=str(key),
        namespace=key.namespace,
        name=key.name,
        shown=shown_name(cluster, key, domain_of(tracked)),
        domain=domain_of(tracked),
        url=lease_url(cluster, key),
        phase=state_of(tracked),
        kind=tracked.kind.value,
        kind_reason=tracked.kind_reason,
        holder=holder_view(tracked.holder),
        held=None if skipped else held_view(cluster, tracked, now, watched),
        vacant_since=since_when(tracked, now) if tracked.phase is Phase.VACANT else "",
        fresh=None if skipped else freshness(tracked, now),
        transitions="" if spec.lease_transitions is None else thousands(spec.lease_transitions),
        spark=sparkline(hours, unwatched) if hours else None,
        skipped=skipped,
        flap=flap_view(flapping, tracked.kind) if flapping else None,
        excuse=excuse_of(tracked),
    )


def since_when(tracked: Tracked, now: datetime) -> str:
    """When its phase began, as far as somebody watched."""
    return f"{when(tracked.phase_since, now)}{' or before' if tracked.was_vacant else ''}"


def domain_of(tracked: Tracked) -> str:
    """The domain in a node's name, such as `.eu-central-1`; "" for other kinds."""
    if tracked.kind is not Kind.HEARTBEAT:
        return ""
    _, dot, domain = tracked.key.name.partition(".")
    return dot + domain


def short_name(tracked: Tracked) -> str:
    return tracked.key.name.removesuffix(domain_of(tracked) or "\0")


class WhyPart(msgspec.Struct, frozen=True):
    """Words around seconds after the last renewal, which count up from `passed` or to `left`."""

    before: str
    number: str = ""
    after: str = ""
    passed: float | None = None
    left: float | None = None


def why(said: Explanation) -> tuple[WhyPart, ...]:
    """The clauses of the explanation with punctuation."""
    last = len(said.clauses) - 1
    return tuple(
        _part(clause, first=index == 0, end="." if index == last else "; ")
        for index, clause in enumerate(said.clauses)
    )


def _number(length: float | None) -> str:
    """A setting, an interval or an age, in the units of the rest of the page."""
    if length is None:
        return ""
    return seconds(length) if isinstance(length, int) else age(length)


def _part(clause: Clause, *, first: bool, end: str) -> WhyPart:
    before = clause.before[:1].upper() + clause.before[1:] if first else clause.before
    return WhyPart(
        before=before,
        number=_number(clause.seconds),
        after=clause.after + end,
        passed=clause.offset if clause.counts == "up" else None,
        left=clause.offset if clause.counts == "down" else None,
    )


MAX_RANKED = 1000  # changes; with more, names decide


def wall_tile(
    cluster: str,
    tracked: Tracked,
    now: datetime,
    *,
    flapping: Flapping | None = None,
    watched: WatchedLately | None = None,
) -> dict[str, Any]:
    holder = holder_view(tracked.holder)
    bad, expired = tracked.phase in TROUBLE, tracked.phase is Phase.EXPIRED
    excused = bool(excuse_of(tracked))
    nobody = holder is None or expired
    skipped = tracked.lasting.not_understood is not None
    lasts: Elapsed | HeldView | None = None
    if bad or skipped:
        # One that ran out has no holder since then, not since its holder was taken out.
        lasts = elapsed(tracked.trouble_since, now)
    elif tracked.held_since:
        lasts = held_view(cluster, tracked, now, watched)
    return {
        "key": str(tracked.key),
        "shown": shown_name(cluster, tracked.key, domain_of(tracked)),
        "namespace": "" if tracked.kind is Kind.HEARTBEAT else tracked.key.namespace,
        "phase": state_of(tracked),
        "excused": excused,
        "rank": _rank(tracked.phase, flapping, excused=excused),
        "flap": flap_view(flapping, tracked.kind) if flapping and not expired else None,
        "who": _who(tracked, None if nobody else holder),
        "hue": None if holder is None or nobody else holder.hue,
        "lasts": lasts,
        "held": not (bad or skipped),
        "fresh": None if nobody or skipped else freshness(tracked, now),
    }


def _rank(phase: Phase, flapping: Flapping | None, *, excused: bool) -> float:
    """The smaller, the worse; of those that flap, the one with the most changes first."""
    rank = severity(phase, flaps=flapping is not None, excused=excused)
    if flapping is None or rank != FLAPPING_SEVERITY:
        return rank
    return round(rank - min(flapping.changes, MAX_RANKED) / 10_000, 4)


def _who(tracked: Tracked, holder: HolderView | None) -> ShownName:
    """The holder; for a heartbeat, which holds itself, its state."""
    if tracked.lasting.not_understood is not None:
        return cut_name("not understood")
    if tracked.kind is Kind.HEARTBEAT:
        return cut_name("stopped" if holder is None else tracked.phase.value)
    return cut_name("No holder") if holder is None else cut_name(holder.host + holder.tail)
