"""The Attention list: what needs attention, worst first, many Leases of a kind in one line."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.urls import reverse

from dashboard.parts.change_sentence import Part, holder_part
from dashboard.parts.flapping import ONE_HOLDER, counted_within, flap_view
from dashboard.parts.formatting import (
    Elapsed,
    age,
    at_or_now,
    counted,
    elapsed,
    listed,
    seconds,
    span_of,
    when,
)
from dashboard.parts.incident_line import care_words, incident_line, said_cause
from dashboard.parts.key_figures import of_kind
from dashboard.parts.lease_row import short_name, since_when
from dashboard.parts.names import cluster_path, lease_url
from leases.domain.change import Change
from leases.domain.figures import FLAPPING_SEVERITY, SEVERITY, needs_attention
from leases.domain.flapping import RULES, Flapping
from leases.domain.incident import Cause, Incident
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.notify import is_quiet
from leases.domain.phase import Phase
from leases.history.deliveries import FailingReceiver
from leases.history.outbox import Care
from leases.history.refused_rows import RefusedValue
from leases.tracking.tracked_lease import Tracked

NO_CARE, MUTED = Care(), "Muted"
MANY = 4  # from so many elections with the same trouble on, they share one line


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """`amount` counts up from `since`, the sentence's end counts down to `until` (epoch s)."""

    rank: float
    phase: str
    icon: str
    namespace: str
    label: str
    url: str
    word: str
    why: tuple[Part, ...]
    amount: str
    moment: str
    since: float | None = None
    until: float | None = None
    until_text: str = ""


NOBODY_CARES: Mapping[ObjectName, str] = {}
_FLAPPING: dict[str, Any] = {"phase": "late", "icon": "i-flap", "word": "Flapping."}


def flapping_lines(
    cluster: str,
    found: Sequence[tuple[Tracked, Flapping]],
    now: datetime,
    cared: Mapping[ObjectName, str] = NOBODY_CARES,
) -> list[Attention]:
    """`cared`: what people do about the incidents of these Leases."""
    groups: dict[Kind, list[tuple[Tracked, Flapping]]] = defaultdict(list)
    for lease, how in found:
        groups[lease.kind].append((lease, how))
    lines = []
    for kind, some in groups.items():
        if len(some) >= (MANY if kind is Kind.ELECTION else 2):
            lines.append(_many_flapping(cluster, kind, some, now))
        else:
            lines += [
                _one_flapping(cluster, lease, how, now, cared.get(lease.key, ""))
                for lease, how in some
            ]
    return lines


def _one_flapping(
    cluster: str, lease: Tracked, how: Flapping, now: datetime, care: str
) -> Attention:
    view = flap_view(how, lease.kind)
    return Attention(
        namespace=lease.key.namespace,
        label=lease.key.name,
        url=lease_url(cluster, lease.key),
        why=(Part(view.says), *_cared(care)),
        amount=view.amount,
        moment=f"since {when(how.counted_since or how.since, now)}",
        **_FLAPPING,
        rank=_flapping_rank(lease.kind),
    )


def _many_flapping(
    cluster: str, kind: Kind, found: Sequence[tuple[Tracked, Flapping]], now: datetime
) -> Attention:
    query = urlencode({"kind": kind.value, "flapping": "true"})
    spaces = {lease.key.namespace for lease, _ in found}
    verb = "expires" if kind in ONE_HOLDER else "changes its holder"
    fewest = min(how.changes for _, how in found)
    within = counted_within(RULES[kind].within, found[0][1].counted_since)
    often = f"each {verb} {min(fewest, RULES[kind].number)} times or more {within}"
    return Attention(
        namespace=spaces.pop() if len(spaces) == 1 else "",
        label=listed([short_name(lease) for lease, _ in found]),
        url=f"{cluster_path('leases', cluster)}?{query}",
        why=(Part(f"{of_kind(len(found), kind)}: {often}."),),
        amount=counted(sum(how.changes for _, how in found), "change"),
        moment=f"since {when(min(how.since for _, how in found), now)}",
        **_FLAPPING,
        rank=_flapping_rank(kind),
    )


def _flapping_rank(kind: Kind) -> float:
    return FLAPPING_SEVERITY + (0.0 if kind is Kind.ELECTION else 0.1)


NAMED = 2  # Leases that an incident's line names
_UNTROUBLED = 2.5  # behind everything that is in trouble now
_BEFORE = 0.1  # before single Leases with the same trouble


def incident_lines(
    going_on: Sequence[Incident],
    troubled: Mapping[ObjectName, Tracked],
    now: datetime,
    care: Care = NO_CARE,
) -> list[Attention]:
    """`troubled` are the Leases of these incidents that would have a line of their own. One that
    is in several counts in the newest.
    """
    oldest_first = sorted(going_on, key=lambda one: one.began)
    newest = {key: one.id for one in oldest_first for key in one.leases}
    newest |= {key: one.id for one in oldest_first for key in one.explained}
    return [
        _line(
            one, [troubled[key] for key in one.leases if key in troubled and newest[key] == one.id],
            now, care,
        )
        for one in going_on
    ]  # fmt: skip


def _line(incident: Incident, bad: Sequence[Tracked], now: datetime, care: Care) -> Attention:
    line = incident_line(incident, now, care)
    worst = min(bad, key=lambda lease: SEVERITY[lease.phase], default=None)
    return Attention(
        rank=_UNTROUBLED if worst is None else SEVERITY[worst.phase] - _BEFORE,
        phase=Phase.LATE.value if worst is None else worst.phase.value,
        icon=line.cause.icon,
        namespace="",
        label=line.sentence,
        url=line.url,
        word=f"{said_cause(incident)}.",
        why=(Part(f"{_extent(incident, bad)}."), *_cared(line.care)),
        amount=line.length,
        moment=f"since {line.moment}",
        since=line.since,
    )


def _cared(said: str) -> tuple[Part, ...]:
    return (Part(f" {MUTED if said == MUTED.lower() else said}."),) if said else ()


def _extent(incident: Incident, bad: Sequence[Tracked]) -> str:
    """`4 Leases, 3 of them still without a holder, 1 late`, `1 Lease still without a holder: a`;
    two or fewer are named, unless the sentence of the incident does.
    """
    said = [counted(incident.lease_count, "Lease")]
    late = [lease for lease in bad if lease.phase is Phase.LATE]
    vacant = [lease for lease in bad if lease.phase is not Phase.LATE]
    unlisted = 0 if incident.unlisted is None else incident.unlisted.without
    if lost := len(vacant) + unlisted:
        named = (
            f": {listed([short_name(lease) for lease in vacant])}"
            if lost == len(vacant) <= NAMED
            else ""
        )
        without = f"still without a holder{named}"
        if lost == incident.lease_count:
            said = [f"{said[0]} {without}"]
        else:
            said.append(f"{lost:,} of them {without}")
    said += [f"{len(late):,} late"] if late else []
    return ", ".join(said)


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
    care: Care = NO_CARE,
) -> list[Attention]:
    """Lines for the incidents that go on, each for all of its Leases; for the other Leases in
    trouble, for those that flap (most changes first), and for what the last changes (oldest first)
    show. A late Lease that flaps has one line; abandoned Leases have `abandoned_line` alone.
    """
    tracked = list(tracked)
    going_on = [one for one in going_on if one.shown]  # what was planned asks for nothing
    going_on = _awaited(going_on, tracked)
    known, troubled = going_on, list(_troubled(tracked, now))
    going_on = _beside(known, flapping, troubled)
    cared = _cared_for(known, now, care)
    covered = {key for incident in going_on for key in incident.leases}
    crowds = [one.unlisted for one in going_on if one.unlisted is not None]
    alone = [(lease, how) for lease, how in flapping if lease.key not in covered]
    flappers = {lease.key for lease, _ in alone}
    groups: dict[tuple[Phase, Kind], list[Tracked]] = defaultdict(list)
    folded = _explained(troubled, going_on)
    for lease in troubled:
        if any(one.counts(lease.kind, lease.phase_since) for one in crowds):
            folded[lease.key] = lease
        elif lease.key in folded:
            continue
        elif lease.phase is not Phase.LATE or lease.key not in flappers:
            groups[lease.phase, lease.kind].append(lease)
    lines = [
        *incident_lines(going_on, folded, now, care),
        *flapping_lines(cluster, alone, now, cared),
    ]
    if unseen := [change for change in missed if change.missed]:
        lines.append(_missed(cluster, unseen, now))
    lines += [_orphans(cluster, orphans, now)] if orphans else []
    lines += [_refused(cluster, refused, now)] if refused else []
    lines += [_skipped(cluster, skipped, now)] if skipped else []
    if nameless_at is not None and now - nameless_at < NAMELESS_SHOWN:
        lines.append(_nameless(cluster, nameless_at, now))
    lines += _of_groups(cluster, groups, now, care)
    return sorted(lines, key=lambda line: (line.rank, line.since or 0.0))


def _explained(
    troubled: Iterable[Tracked], going_on: Sequence[Incident]
) -> dict[ObjectName, Tracked]:
    """Those whose trouble an incident tells; that a Lease is late belongs to any incident of it."""
    late = {key for incident in going_on for key in incident.leases}
    lost = {key for incident in going_on for key in incident.explained}
    return {
        lease.key: lease
        for lease in troubled
        if lease.key in (late if lease.phase is Phase.LATE else lost)
    }


def _cared_for(going_on: Iterable[Incident], now: datetime, care: Care) -> dict[ObjectName, str]:
    """What people do about the incidents for which the line of a Lease that flaps may stand."""
    found: dict[ObjectName, str] = {}
    for one in going_on:
        if one.cause is Cause.FLAPPING:
            found |= dict.fromkeys(one.leases, care_words(care, one, now))
    return found


def _awaited(going_on: Iterable[Incident], tracked: Iterable[Tracked]) -> list[Incident]:
    """Leave out the incidents that only abandoned Leases keep going on."""
    lost = [lease for lease in tracked if lease.phase is not Phase.LATE]
    abandoned = {lease.key for lease in lost if lease.abandoned}
    if not abandoned:
        return [*going_on]
    waits = {lease.key for lease in lost} - abandoned
    return [
        one
        for one in going_on
        if one.unlisted is not None
        or abandoned.isdisjoint(one.leases)
        or not waits.isdisjoint(one.explained)
    ]


def _beside(
    going_on: Iterable[Incident],
    flapping: Iterable[tuple[Tracked, Flapping]],
    troubled: Iterable[Tracked],
) -> list[Incident]:
    """Leave out the incident of a Lease that flaps while it is held: the Lease's line says more."""
    held = {lease.key for lease, _ in flapping}
    if held:
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
    cluster: str, groups: Mapping[tuple[Phase, Kind], list[Tracked]], now: datetime, care: Care
) -> Iterator[Attention]:
    """A line for each Lease, or one for many with the same trouble."""
    for (phase, kind), found in groups.items():
        if len(found) >= (MANY if kind is Kind.ELECTION else 2):
            yield _many(cluster, phase, kind, found, now)
        else:
            yield from (_one(cluster, lease, now, care) for lease in found)


def _rank(phase: Phase, kind: Kind) -> float:
    return SEVERITY[phase] + (0.0 if kind is Kind.ELECTION else 0.5)


def _one(cluster: str, lease: Tracked, now: datetime, care: Care) -> Attention:
    muted = is_quiet(care.quiet, cluster, (lease.key,), now)
    until = lease.runs_out_at if lease.phase is Phase.LATE else None
    return Attention(
        rank=_rank(lease.phase, lease.kind),
        phase=lease.phase.value,
        icon=f"st-{lease.phase.value}",
        namespace=lease.key.namespace,
        label=lease.key.name,
        url=lease_url(cluster, lease.key),
        word=f"{lease.phase.value.capitalize()}.",
        why=(*_why(lease, now), *_cared(MUTED.lower() if muted else "")),
        **_counting(elapsed(lease.phase_since, now)),
        moment=f"since {since_when(lease, now)}",
        until=until.timestamp() if until else None,
        until_text=age((until - now).total_seconds()) if until else "",
    )


def _counting(passed: Elapsed) -> dict[str, Any]:
    return {"amount": passed.length, "since": passed.since}


def _why(lease: Tracked, now: datetime) -> tuple[Part, ...]:
    if lease.phase is Phase.VACANT or not lease.holder:
        return (Part("Nobody has acquired it since."),)
    if lease.phase is Phase.LATE:
        usual = lease.cadence_seconds
        every = f", usually every {seconds(usual)}" if usual else ""
        return (Part(f"No renewal since {when(lease.renewed_at, now)}{every}."),)
    if lease.kind is Kind.HEARTBEAT:
        return (Part(f"The heartbeat stopped at {when(lease.renewed_at, now)}."),)
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
        url=f"{cluster_path('leases', cluster)}?{query}",
        word=f"{phase.value.capitalize()}.",
        why=(Part(f"{of_kind(len(found), kind)} {'stopped' if stopped else verb}."),),
        **_counting(elapsed(first, now)),
        moment=f"first at {when(first, now)}",
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
        f"{cluster_path('history', cluster)}?inferred=true",
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
        cluster_path("history", cluster),
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
        f"{cluster_path('leases', cluster)}?phase=untimed",
        rank=3.0,
        phase="unknown",
        icon="st-unknown",
        word="Not understood.",
        why=(Part(f"{reason} {state} not known."),),
        **_counting(elapsed(since, now)),
        moment=f"since {when(since, now)}",
    )


def _nameless(cluster: str, at: datetime, now: datetime) -> Attention:
    return _about(
        cluster,
        [],
        cluster_path("leases", cluster),
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
    first = min(lease.renewed_at for lease in found)
    return Attention(
        rank=8.0,
        phase="deleted",
        icon="i-unplug",
        namespace=found[0].key.namespace,
        label=listed([short_name(lease) for lease in found]),
        url=f"{cluster_path('nodes', cluster)}#orphans",
        word="Orphaned.",
        why=(Part(f"{of_kind(len(found), Kind.HEARTBEAT)} of Nodes that are not there."),),
        amount=counted(len(found), "Lease"),
        moment=f"last renewed {when(first, now)}",
    )


def abandoned_line(
    cluster: str, excused: Sequence[Tracked], threshold: timedelta, now: datetime
) -> Attention | None:
    """It stands last: nobody waits for these Leases."""
    found = [lease for lease in excused if lease.abandoned]
    if not found:
        return None
    first = min(lease.phase_since for lease in found)
    names = listed([lease.key.name for lease in found])
    return Attention(
        rank=10.0,
        phase="abandoned",
        icon="st-vacant",
        namespace="",
        label=f"{counted(len(found), 'Lease')} abandoned",
        url=f"{cluster_path('leases', cluster)}?abandoned=true",
        word="",
        why=(Part(f"Vacant for more than {span_of(threshold)}, or never renewed: {names}."),),
        **_counting(elapsed(first, now)),
        moment=f"first at {when(first, now)}",
    )


def receiver_lines(failing: Sequence[FailingReceiver], now: datetime) -> Iterator[Attention]:
    """One line at most: it stands behind all Leases, for none of them is in trouble by it."""
    if not failing:
        return
    query = f"?receiver={failing[0].number}" if len(failing) == 1 else ""
    who = "It does" if len(failing) == 1 else f"{counted(len(failing), 'receiver')} do"
    retry_at = min((one.retry_at for one in failing if one.retry_at is not None), default=None)
    yield Attention(
        rank=9.5,
        phase="deleted",
        icon="i-warn",
        namespace="",
        label=listed([one.name for one in failing]),
        url=f"{reverse('notification_log')}{query}",
        word="Not notified.",
        why=(Part(f"{who} not take messages. An admin finds the reason in the delivery log."),),
        amount=counted(sum(one.failures for one in failing), "attempt"),
        moment="" if retry_at is None else f"next {at_or_now(retry_at, now)}",
    )
