"""The head of a Lease's page: who holds it, why it is in its phase, what if the holder died."""

import difflib
from datetime import datetime
from typing import Any

import msgspec
import yaml
from django.urls import reverse

from dashboard.parts.formatting import Elapsed, age, clock, elapsed, seconds
from dashboard.parts.lease_row import (
    RowView,
    WhyPart,
    excuse_in_full,
    row_view,
    skipped_in_full,
    why,
)
from dashboard.parts.names import HolderView, holder_in_path, holder_view
from dashboard.parts.page_links import LAST_HOUR, history_url, holder_url, timeline_url
from leases.domain.election import STRETCH, Forecast, Outlook, end_of_term, forecast
from leases.domain.flapping import Flapping
from leases.domain.kind import NODE_LEASES, Kind
from leases.domain.phase import Phase, explain
from leases.history.activity import WatchedLately
from leases.tracking.tracked_lease import Tracked


class Bound(msgspec.Struct, frozen=True):
    """Seconds from now as text; it is over `left` seconds after the last renewal."""

    text: str
    left: float


class ForecastView(msgspec.Struct, frozen=True):
    """One sentence around its bounds, and the facts behind it."""

    before: str
    bounds: tuple[Bound, ...]
    after: str
    basis: str


_GRACE = "kube-controller-manager has a grace period of its own, 40 to 50 s by default"
_NOBODY_ELSE = {
    Outlook.HEARTBEAT: "Nobody else acquires a heartbeat: what follows is up to those who watch it",
    Outlook.IDENTITY: "Nobody else acquires an identity: once expired it is left to be deleted",
}
_UNKNOWN = "A Lease does not say whether another contender is running."


def forecast_view(tracked: Tracked, now: datetime) -> ForecastView:
    seen = forecast(tracked)
    if seen.outlook is Outlook.STUCK:
        text = "If the holder died now, nobody could acquire it: it cannot run out"
        return ForecastView(f"{text}, it must be given back or edited.", (), "", "")
    if seen.outlook in _NOBODY_ELSE:
        return _of_one_holder(tracked, seen, now)
    if tracked.phase in (Phase.EXPIRED, Phase.VACANT):
        return _open(seen, now)
    return _held(tracked, seen, now)


def _held(tracked: Tracked, seen: Forecast, now: datetime) -> ForecastView:
    bounds = _bounds(tracked, seen, now)
    if seen.outlook is Outlook.COORDINATED:
        before = "If the holder died now, the API server may give it to another candidate in about "
    else:
        before = "If the holder died now, others may acquire it in about "
    after = " at the earliest." if len(bounds) == 1 else "."
    return ForecastView(before, bounds, after, _basis(seen))


def _open(seen: Forecast, now: datetime) -> ForecastView:
    others, server = "Others may acquire it now", "The API server may give it to a candidate now"
    if seen.earliest:
        since = f"since {clock(seen.earliest)}"
        others = f"Others have been able to acquire it {since}"
        server = f"The API server has been able to give it to a candidate {since}"
    if seen.latest is None:
        return ForecastView(f"{others}.", (), "", _basis(seen))
    wait = (seen.latest - now).total_seconds()
    by = f"should have by {clock(seen.latest)}" if wait > 0 else f"had until {clock(seen.latest)}"
    if seen.outlook is Outlook.COORDINATED:
        said = f"{server}, and {by} if one answers."
    else:
        said = f"{others}; a contender of client-go that runs {by}."
    return ForecastView(said, (), "", _basis(seen))


def _of_one_holder(tracked: Tracked, seen: Forecast, now: datetime) -> ForecastView:
    basis = f"{_NOBODY_ELSE[seen.outlook]}."
    if tracked.key.namespace == NODE_LEASES:
        basis = f"{_NOBODY_ELSE[seen.outlook]}; {_GRACE}."
    if tracked.phase is Phase.VACANT:
        return ForecastView("Nobody holds it.", (), "", basis)
    if seen.earliest is None:
        return ForecastView("If the holder died now, this would never expire.", (), "", basis)
    if tracked.phase is Phase.EXPIRED:
        return ForecastView(f"It ran out at {clock(seen.earliest)}.", (), "", basis)
    bounds = _bounds(tracked, seen, now)
    return ForecastView("If the holder died now, it would expire in ", bounds, ".", basis)


def _bounds(tracked: Tracked, seen: Forecast, now: datetime) -> tuple[Bound, ...]:
    return tuple(
        Bound(age((moment - now).total_seconds()), (moment - tracked.observed_at).total_seconds())
        for moment in (seen.earliest, seen.latest)
        if moment is not None
    )


def _basis(seen: Forecast) -> str:
    if seen.outlook is Outlook.COORDINATED:
        return (
            "Its controller judges by renewTime, looks again within 5 s, "
            "and gives the candidates up to 5 s to answer."
        )
    if seen.outlook is not Outlook.CONTENDED or seen.retry_seconds is None:
        return f"How often others look is not known of a Lease of this kind. {_UNKNOWN}"
    retry = seen.retry_seconds
    learned = "learned from the renewals" if seen.learned else "assumed from the duration"
    return (
        f"Contenders of client-go look every {seconds(round(retry, 1))} to "
        f"{seconds(round(STRETCH * retry, 1))} ({learned}) and wait out the duration from the "
        f"renewal they saw last. {_UNKNOWN}"
    )


class LeaseView(msgspec.Struct, frozen=True, kw_only=True):
    """`why` and `forecast` count from `observed` (epoch s); `successor` is the preferred holder."""

    row: RowView
    held_by: str
    edit_url: str
    holder_url: str
    timeline_url: str
    observed: float
    why: tuple[WhyPart, ...]
    forecast: ForecastView
    successor: HolderView | None
    excuse: str
    every: str
    expired: Elapsed | None
    last_hour_url: str


def lease_view(
    cluster: str,
    tracked: Tracked,
    now: datetime,
    *,
    flapping: Flapping | None = None,
    watched: WatchedLately | None = None,
) -> LeaseView:
    meta = tracked.lease.metadata
    skipped = skipped_in_full(tracked, now)
    return LeaseView(
        row=row_view(cluster, tracked, now, flapping=flapping, watched=watched),
        held_by=holder_in_path(tracked.holder or ""),
        edit_url=reverse("lease_edit", args=[cluster, meta.namespace, meta.name]),
        holder_url=_holder_url(cluster, tracked),
        timeline_url=timeline_url(cluster, tracked.key, tracked.kind),
        observed=tracked.observed_at.timestamp(),
        why=(WhyPart(skipped),) if skipped else why(explain(tracked, now)),
        forecast=forecast_view(tracked, now),
        successor=holder_view(end_of_term(tracked.lease)),
        excuse=excuse_in_full(tracked),
        every=seconds(tracked.cadence_seconds) if tracked.cadence_seconds else "",
        expired=elapsed(tracked.phase_since, now) if tracked.phase is Phase.EXPIRED else None,
        last_hour_url=history_url(cluster, tracked.key, LAST_HOUR),
    )


def _holder_url(cluster: str, tracked: Tracked) -> str:
    """Holders lists no heartbeats."""
    if tracked.holder is None:
        return ""
    return holder_url(cluster, tracked.holder, in_leases=tracked.kind is Kind.HEARTBEAT)


_LARGE = 64 * 1024  # bytes
# libyaml's, a hundred times as fast; it writes some characters as escapes.
_QUICK = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def to_yaml(item: dict[str, Any]) -> str:
    """Keys in their given order, no aliases, no line folding."""
    quick = len(msgspec.json.encode(item)) > _LARGE
    written: str = yaml.dump(
        item,
        Dumper=_QUICK if quick else yaml.SafeDumper,
        sort_keys=False,
        allow_unicode=True,
        width=1000,
    )
    return written


def without_managed_fields(item: dict[str, Any]) -> dict[str, Any]:
    """The same object without managedFields, which would bury the rest."""
    metadata = {k: v for k, v in item.get("metadata", {}).items() if k != "managedFields"}
    return {**item, "metadata": metadata}


DiffLine = tuple[str, str]
MAX_DIFF = 1000  # lines that are shown
_AROUND = 3  # unchanged lines beside a change, in a long text
_CLOSE = 50  # lines and
_CLOSE_CHARACTERS = 5000  # of each side, in which each line is compared with each
_COMPARED = 2000  # lines of each side that are matched; of more, all count as changed


def diff_lines(before: str, after: str) -> list[DiffLine]:
    """The lines of both texts with their sign: " ", "-" or "+". In bounded time and length."""
    found = _compared(before.splitlines(), after.splitlines())
    if len(found) > MAX_DIFF:
        found = _near_changes(found)
    if len(found) > MAX_DIFF:
        more = len(found) - MAX_DIFF
        found = [*found[:MAX_DIFF], (" ", f"… and {more:,} more lines")]
    return found


def _compared(old: list[str], new: list[str]) -> list[DiffLine]:
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle = old[head : len(old) - tail], new[head : len(new) - tail]
    return [
        *((" ", line) for line in old[:head]),
        *_matched(*middle),
        *((" ", line) for line in old[len(old) - tail :]),
    ]


def _matched(old: list[str], new: list[str]) -> list[DiffLine]:
    if all(len(side) <= _CLOSE and sum(map(len, side)) <= _CLOSE_CHARACTERS for side in (old, new)):
        return [(line[0], line[2:]) for line in difflib.ndiff(old, new) if line[0] != "?"]
    if max(len(old), len(new)) > _COMPARED:
        return [*(("-", line) for line in old), *(("+", line) for line in new)]
    found: list[DiffLine] = []
    matcher = difflib.SequenceMatcher(None, old, new)
    for what, first, last, new_first, new_last in matcher.get_opcodes():
        if what == "equal":
            found += [(" ", line) for line in old[first:last]]
        else:
            found += [("-", line) for line in old[first:last]]
            found += [("+", line) for line in new[new_first:new_last]]
    return found


def _near_changes(found: list[DiffLine]) -> list[DiffLine]:
    near: set[int] = set()
    for number, (sign, _) in enumerate(found):
        if sign != " ":
            near.update(range(number - _AROUND, number + _AROUND + 1))
    return [line for number, line in enumerate(found) if number in near]
