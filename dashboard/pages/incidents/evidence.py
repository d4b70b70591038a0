"""The evidence of an incident: each sentence with links to what it names, and its moment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from urllib.parse import urlencode

import msgspec
from django.urls import reverse

from dashboard.charts.time_scale import Scale, percent
from dashboard.parts.cause_words import SOURCE_WORDS
from dashboard.parts.formatting import capitalized, shortened
from dashboard.parts.incident_line import visible
from dashboard.parts.lease.page_links import ShownTime, holder_url
from dashboard.parts.lease.row import lease_url
from leases.domain.cause.incident import Incident, Source
from leases.domain.changes.change import Change
from leases.domain.lease import ObjectName

MAX_SENTENCE = 1000  # characters
MAX_LINKED = 40  # characters of a name in a sentence
_TIME = re.compile(r"(?<![\d:.])([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(\.\d{1,6})?(?!\d|:\d)")
_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)
_APART = 2.6  # percent between two marks; nearer ones share one
# What is only concluded where a source could not be read.
_CONCLUDED = {
    Source.PODS: "why a holder's process ended, where its Pod ran and who owns it",
    Source.NODES: "whether a node was ready or cordoned",
    Source.EVENTS: "what the cluster reported about Pods, Nodes and Leases",
    Source.LEASES: "what happened while nobody watched",
}


Named = ObjectName | str


class EvidencePart(msgspec.Struct, frozen=True):
    """A piece of a sentence. A name has a `url`, and `whole` in its tooltip if it is cut."""

    text: str
    url: str = ""
    is_name: bool = False
    whole: str = ""


class EvidenceLine(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    parts: tuple[EvidencePart, ...]
    sentence: str
    source: str
    at: datetime | None  # the first time of day that it names
    at_url: str


class EvidenceMark(msgspec.Struct, frozen=True):
    """The numbers of the evidence at one place of the timeline."""

    x: float
    label: str
    title: str


def evidence_lines(incident: Incident, story: Iterable[Change]) -> list[EvidenceLine]:
    names = _names(incident, story)
    lines = []
    for number, one in enumerate(incident.evidence, 1):
        at = _moment(one.sentence, incident)
        lines.append(
            EvidenceLine(
                number=number,
                parts=linked(one.sentence, incident.cluster, names),
                sentence=shortened(visible(one.sentence), MAX_SENTENCE),
                source=SOURCE_WORDS[one.source],
                at=at,
                at_url=_changes_around(incident.cluster, at) if at else "",
            )
        )
    return lines


def evidence_marks(lines: Sequence[EvidenceLine], scale: Scale) -> list[EvidenceMark]:
    """Where each piece of evidence belongs on the timeline, if its moment is shown there."""
    marks: list[EvidenceMark] = []
    placed = [(line.at, line) for line in lines if line.at is not None]
    for at, line in sorted(placed, key=lambda one: one[0]):
        if not scale.since <= at <= scale.until:
            continue
        x, last = percent(scale.x(at)), marks[-1] if marks else None
        title = f"{line.number}: {shortened(line.sentence, 120)}"
        if last is not None and x - last.x < _APART:
            marks[-1] = EvidenceMark(last.x, f"{last.label.rstrip('…')}…", f"{last.title}\n{title}")
        else:
            marks.append(EvidenceMark(x, str(line.number), title))
    return marks


def without_notes(incident: Incident) -> list[tuple[str, str]]:
    """What could not be read, and what that means for the conclusion."""
    return [without_note(source) for source in incident.without]


def without_note(source: Source) -> tuple[str, str]:
    """A title and a sentence."""
    concluded = capitalized(_CONCLUDED[source])
    title = f"{SOURCE_WORDS[source]} could not be read"
    if source is Source.LEASES:
        return title, f"{concluded} is only concluded."
    rights = f"With get and list on {source.value} it could be certain."
    return title, f"{concluded} is only concluded. {rights}"


def source_count(incident: Incident) -> int:
    return len({one.source for one in incident.evidence})


def linked(sentence: str, cluster: str, names: Mapping[str, Named]) -> tuple[EvidencePart, ...]:
    """The sentence with a link at each whole name of `names`."""
    sentence = sentence[: MAX_SENTENCE * 4]
    found = sorted((name for name in names if name in sentence), key=len, reverse=True)
    if not found:
        return (EvidencePart(shortened(visible(sentence), MAX_SENTENCE)),)
    choices = "|".join(map(re.escape, found))
    pieces = re.split(rf"(?<![\w.-])({choices})(?![\w-]|\.\w)", sentence)
    parts = []
    for place, piece in enumerate(pieces):
        if place % 2:
            text = shortened(visible(piece), MAX_LINKED)
            url = _page_of(cluster, names[piece])
            parts.append(EvidencePart(text, url, True, "" if text == piece else visible(piece)))
        elif piece:
            parts.append(EvidencePart(shortened(visible(piece), MAX_SENTENCE)))
    return tuple(parts)


def _page_of(cluster: str, named: Named) -> str:
    if isinstance(named, ObjectName):
        return lease_url(cluster, named)
    return holder_url(cluster, named)


def _names(incident: Incident, story: Iterable[Change]) -> dict[str, Named]:
    """What a sentence may name: a Lease, or a holder."""
    holders = (holder for one in story for holder in (one.holder, one.previous_holder) if holder)
    names: dict[str, Named] = {name: name for name in (*holders, *incident.hosts)}
    for key in incident.leases:  # of a node, the page of its heartbeat says more
        names[key.name] = names[f"{key.namespace}/{key.name}"] = key
    return names


def _moment(sentence: str, incident: Incident) -> datetime | None:
    """The first time of day in a sentence, on the day that is nearest to the incident."""
    found = _TIME.search(sentence)
    if found is None:
        return None
    hour, minute, second = (int(found[place]) for place in (1, 2, 3))
    fraction = round(float(found[4] or 0) * 1_000_000)
    same_day = incident.began.replace(hour=hour, minute=minute, second=second, microsecond=fraction)
    days = (same_day - _DAY, same_day, same_day + _DAY)
    return min(days, key=lambda moment: abs(moment - incident.began))


def _changes_around(cluster: str, at: datetime) -> str:
    time = ShownTime(since=at - _MINUTE, until=at + _MINUTE).of_history()
    return f"{reverse('history', args=[cluster])}?{urlencode(time)}"
