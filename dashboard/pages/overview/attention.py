"""The Attention list: what needs attention, worst first, many Leases of a kind in one line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.pages.overview.attention_line import MANY, Attention
from dashboard.pages.overview.flapping_lines import flapping_lines
from dashboard.pages.overview.incident_lines import incident_lines
from dashboard.parts.change_sentence import Part, holder_part
from dashboard.parts.formatting import age, counted, listed, seconds, when
from dashboard.parts.key_figures import of_kind
from dashboard.parts.lease.row import lease_url, short_name
from leases.domain.cause.incident import Cause, Incident
from leases.domain.changes.change import Change
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.past.flapping import Flapping
from leases.domain.phase import Phase
from leases.domain.severity import SEVERITY, needs_attention
from leases.history.refused_rows import RefusedValue
from leases.tracking.tracked_lease import Tracked

NAMELESS_SHOWN = timedelta(hours=1)


def attention(
    cluster: str,
    tracked: Iterable[Tracked],
    *,
    now: datetime,
    flapping: Sequence[tuple[Tracked, Flapping]] = (),
    missed: Sequence[Change] = (),
    orphans: Sequence[Tracked] = (),
    refused: Sequence[RefusedValue] = (),
    skipped: Sequence[Tracked] = (),
    nameless_at: datetime | None = None,
    going_on: Sequence[Incident] = (),
) -> list[Attention]:
    """Lines for the incidents that go on, each for all of its Leases; for the other Leases in
    trouble, for those that flap (most changes first), and for what the last changes (oldest first)
    show. A late Lease that flaps has one line.
    """
    going_on = _beside(going_on, flapping, troubled := list(_troubled(tracked, now)))
    covered = {key for incident in going_on for key in incident.leases}
    alone = [(lease, how) for lease, how in flapping if lease.key not in covered]
    flappers = {lease.key for lease, _ in alone}
    groups: dict[tuple[Phase, Kind], list[Tracked]] = defaultdict(list)
    folded: dict[ObjectName, Tracked] = {}
    for lease in troubled:
        if lease.key in covered:
            folded[lease.key] = lease
        elif lease.phase is not Phase.LATE or lease.key not in flappers:
            groups[lease.phase, lease.kind].append(lease)
    lines = [*incident_lines(going_on, folded, now), *flapping_lines(cluster, alone, now)]
    if unseen := [change for change in missed if change.missed]:
        lines.append(_missed(cluster, unseen, now))
    lines += [_orphans(cluster, orphans, now)] if orphans else []
    lines += [_refused(cluster, refused, now)] if refused else []
    lines += [_skipped(cluster, skipped, now)] if skipped else []
    if nameless_at is not None and now - nameless_at < NAMELESS_SHOWN:
        lines.append(_nameless(cluster, nameless_at, now))
    lines += _of_groups(cluster, groups, now)
    return sorted(lines, key=lambda line: (line.rank, line.since or 0.0))


def _beside(
    going_on: Iterable[Incident],
    flapping: Iterable[tuple[Tracked, Flapping]],
    troubled: Iterable[Tracked],
) -> list[Incident]:
    """Leave out the incident of a Lease that flaps while it is held: the Lease's line says more."""
    held = {lease.key for lease, _ in flapping}
    held -= {lease.key for lease in troubled if lease.phase is not Phase.LATE}
    return [
        one
        for one in going_on
        if one.cause is not Cause.FLAPPING or not held.issuperset(one.leases)
    ]


def _troubled(leases: Iterable[Tracked], now: datetime) -> Iterator[Tracked]:
    for lease in leases:
        since, excused = lease.phase_since, lease.excused
        if needs_attention(lease.phase, lease.kind, since=since, now=now, excused=excused):
            yield lease


def _of_groups(
    cluster: str, groups: Mapping[tuple[Phase, Kind], list[Tracked]], now: datetime
) -> Iterator[Attention]:
    """A line for each Lease, or one for many with the same trouble."""
    for (phase, kind), found in groups.items():
        if len(found) >= (MANY if kind is Kind.ELECTION else 2):
            yield _many(cluster, phase, kind, found, now)
        else:
            yield from (_one(cluster, lease, now) for lease in found)


def _rank(phase: Phase, kind: Kind) -> float:
    return SEVERITY[phase] + (0.0 if kind is Kind.ELECTION else 0.5)


def _one(cluster: str, lease: Tracked, now: datetime) -> Attention:
    until = lease.runs_out_at if lease.phase is Phase.LATE else None
    return Attention(
        rank=_rank(lease.phase, lease.kind),
        phase=lease.phase.value,
        icon=f"st-{lease.phase.value}",
        namespace=lease.key.namespace,
        label=lease.key.name,
        url=lease_url(cluster, lease.key),
        word=f"{lease.phase.value.capitalize()}.",
        why=_why(lease, now),
        amount=age((now - lease.phase_since).total_seconds()),
        moment=f"since {when(lease.phase_since, now)}",
        since=lease.phase_since.timestamp(),
        until=until.timestamp() if until else None,
        until_text=age((until - now).total_seconds()) if until else "",
    )


def _why(lease: Tracked, now: datetime) -> tuple[Part, ...]:
    if lease.phase is Phase.VACANT or not lease.holder:
        return (Part("Nobody has acquired it since."),)
    if lease.phase is Phase.LATE:
        usual = lease.cadence_seconds
        every = f", usually every {seconds(usual)}" if usual else ""
        return (Part(f"No renewal since {when(lease.observed_at, now)}{every}."),)
    if lease.kind is Kind.HEARTBEAT:
        return (Part(f"The heartbeat stopped at {when(lease.observed_at, now)}."),)
    return (Part("Nobody validly holds it. Last held by "), holder_part(lease.holder), Part("."))


def _many(cluster: str, phase: Phase, kind: Kind, found: list[Tracked], now: datetime) -> Attention:
    found.sort(key=lambda lease: lease.phase_since)
    names = [short_name(lease) for lease in found]
    spaces = {lease.key.namespace for lease in found}
    first = found[0].phase_since
    verb = {Phase.EXPIRED: "expired", Phase.LATE: "late", Phase.VACANT: "without a holder"}[phase]
    stopped = kind is Kind.HEARTBEAT and phase is Phase.EXPIRED
    query = urlencode({"kind": kind.value, "phase": phase.value})
    return Attention(
        rank=_rank(phase, kind),
        phase=phase.value,
        icon=f"st-{phase.value}",
        namespace=spaces.pop() if len(spaces) == 1 else "",
        label=listed(names),
        url=f"{reverse('leases', args=[cluster])}?{query}",
        word=f"{phase.value.capitalize()}.",
        why=(Part(f"{of_kind(len(found), kind)} {'stopped' if stopped else verb}."),),
        amount=age((now - first).total_seconds()),
        moment=f"first at {when(first, now)}",
        since=first.timestamp(),
    )


def _about(cluster: str, keys: Sequence[ObjectName], many_url: str, **fields: Any) -> Attention:
    """One line about one Lease, or about several with a link to all of them."""
    one = len(keys) == 1
    return Attention(
        namespace=keys[0].namespace if one else "",
        label=listed([key.name for key in keys]) or cluster,
        url=lease_url(cluster, keys[0]) if one else many_url,
        **fields,
    )


def _missed(cluster: str, found: Sequence[Change], now: datetime) -> Attention:
    """One line for the changes of holder that only the Leases' counters show."""
    number = sum(change.missed for change in found)
    return _about(
        cluster,
        list(dict.fromkeys(ObjectName(one.namespace, one.name) for one in found)),
        f"{reverse('history', args=[cluster])}?inferred=true",
        rank=9.0,
        phase="deleted",
        icon="i-blind",
        word="Missed changes.",
        why=(Part(f"leaseTransitions counts {counted(number, 'change')} of holder not seen."),),
        amount=f"{number:,} unseen",
        moment=f"last at {when(found[-1].at, now)}",
    )


def _refused(cluster: str, found: Sequence[RefusedValue], now: datetime) -> Attention:
    """One line for the rows that the database refused, with the newest reason."""
    said = f"The database refused {counted(len(found), 'row')}: {found[-1].error.rstrip('.')}."
    return _about(
        cluster,
        list(dict.fromkeys(ObjectName(one.namespace, one.name) for one in found if one.name)),
        reverse("history", args=[cluster]),
        rank=7.0,
        phase="deleted",
        icon="i-blind",
        word="Missing in history.",
        why=(Part(f"{said} An admin finds what they held in the list of refused rows."),),
        amount=counted(len(found), "row"),
        moment=f"last at {when(found[-1].at, now)}",
    )


def _skipped(cluster: str, found: Sequence[Tracked], now: datetime) -> Attention:
    """One line for the Leases whose newest write was not understood."""
    since = min(lease.phase_since for lease in found)
    not_understood = found[-1].lasting.not_understood
    reason = "" if not_understood is None else not_understood.reason
    state = "Its state is" if len(found) == 1 else "Their states are"
    return _about(
        cluster,
        [lease.key for lease in found],
        f"{reverse('leases', args=[cluster])}?phase=untimed",
        rank=3.0,
        phase="unknown",
        icon="st-unknown",
        word="Not understood.",
        why=(Part(f"{reason} {state} not known."),),
        amount=age((now - since).total_seconds()),
        moment=f"since {when(since, now)}",
        since=since.timestamp(),
    )


def _nameless(cluster: str, at: datetime, now: datetime) -> Attention:
    return _about(
        cluster,
        [],
        reverse("leases", args=[cluster]),
        rank=3.5,
        phase="unknown",
        icon="st-unknown",
        word="Not understood.",
        why=(Part("The cluster sent a Lease whose name could not be read. The log says more."),),
        amount="",
        moment=f"last at {when(at, now)}",
    )


def _orphans(cluster: str, found: Sequence[Tracked], now: datetime) -> Attention:
    """One line for the heartbeats of missing Nodes."""
    first = min(lease.observed_at for lease in found)
    return Attention(
        rank=8.0,
        phase="deleted",
        icon="i-unplug",
        namespace=found[0].key.namespace,
        label=listed([short_name(lease) for lease in found]),
        url=f"{reverse('nodes', args=[cluster])}#orphans",
        word="Orphaned.",
        why=(Part(f"{of_kind(len(found), Kind.HEARTBEAT)} of Nodes that are not there."),),
        amount=counted(len(found), "Lease"),
        moment=f"last renewed {when(first, now)}",
    )
