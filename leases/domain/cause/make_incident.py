"""Make an incident of a group of episodes."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

import msgspec

from leases.domain.cause.clue import Clue
from leases.domain.cause.groups.judged import Group
from leases.domain.cause.incident import Cause, Evidence, Incident, Source
from leases.domain.cause.verdict import Verdict

MAX_HOSTS = 50
MAX_EVIDENCE = 25


class ReportedAs(msgspec.Struct, frozen=True):
    """What an incident was made from when it was reported. It is made anew when this changes."""

    verdict: Verdict
    serials: list[int]  # of the judgements
    settles_at: datetime

    @classmethod
    def of(cls, group: Group, settled_after: timedelta) -> ReportedAs:
        settles_at = max(one.changed_at for one in group.episodes) + settled_after
        return cls(group.verdict, [one.serial for one in group.episodes], settles_at)

    def still_holds(self, group: Group, now: datetime) -> bool:
        if now >= self.settles_at or [one.serial for one in group.episodes] != self.serials:
            return False
        old, new = self.verdict, group.verdict
        return old is new or _said(old) == _said(new)


def _said(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.cause, verdict.confidence, verdict.sentence


def incident_id(cluster: str, first: Clue) -> str:
    """Return the id of the incident that begins with this change."""
    text = f"{cluster} {first.key} {first.identity}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def incident_of(
    cluster: str, number: str, group: Group, *, without: tuple[Source, ...], settled: bool
) -> Incident:
    """Return the incident as it is known now."""
    episodes = [one.episode for one in group.episodes]
    clues = sorted(
        (clue for one in episodes for clue in one.clues), key=lambda clue: clue.change.at
    )
    verdict = group.verdict
    hosts = [*group.hosts]
    hosts += [one.loser.host for one in episodes if one.loser is not None]
    ended = [one.ended_at for one in episodes]
    if verdict.cause is Cause.FLAPPING and not settled:  # until it holds: another loss may follow
        ended = [None]
    gaps = [one.gap_seconds for one in episodes if one.gap_seconds is not None]
    evidence = verdict.evidence or (Evidence(verdict.sentence, Source.LEASES),)
    return Incident(
        id=number,
        cluster=cluster,
        cause=verdict.cause,
        confidence=verdict.confidence,
        sentence=verdict.sentence,
        began=min(clue.change.at for clue in clues),
        ended=None if None in ended else max(one for one in ended if one is not None),
        leases=tuple(sorted({one.key for one in episodes})),
        hosts=tuple(dict.fromkeys(hosts))[:MAX_HOSTS],
        writer=verdict.writer,
        worst_gap_seconds=max(gaps, default=None),
        evidence=tuple(dict.fromkeys(evidence))[:MAX_EVIDENCE],
        without=without,
        members=tuple(clue.member for clue in clues),
        settled=settled,
    )


def withdrawn(incident: Incident, heir: str) -> Incident:
    """Return an incident that turned out to be part of another."""
    return msgspec.structs.replace(incident, members=(), settled=True, part_of=heir)


def given_up(incident: Incident) -> Incident:
    """Return an incident that is followed no longer: it counts as settled and over."""
    ended = incident.ended or incident.began
    return msgspec.structs.replace(incident, settled=True, ended=ended)
