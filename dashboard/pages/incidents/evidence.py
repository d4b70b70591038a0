"""The evidence of an incident with links, its lanes, and who was affected."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import msgspec

from dashboard.charts.lanes import fog, shapes
from dashboard.charts.time_axis import Scale, percent, ticks
from dashboard.parts.cause_words import SOURCE_WORDS
from dashboard.parts.formatting import (
    age,
    capitalized,
    counted,
    gap_length,
    lost_length,
    more_unwatched,
    shortened,
    span_of,
    when,
)
from dashboard.parts.incident_line import visible, worst_gap
from dashboard.parts.lane_labels import lane_marks, shape_views
from dashboard.parts.names import (
    HolderView,
    ShownName,
    beside,
    cluster_path,
    holder_view,
    lease_url,
    shown_name,
)
from dashboard.parts.page_links import ShownTime, holder_url, lease_url_at
from dashboard.parts.time_range import SHORTEST
from leases.domain.change import COUNTED_ONCE, Change, ChangeType
from leases.domain.figures import LONG_GAP_SECONDS, Held, Span, gap_before, held
from leases.domain.incident import Evidence, Incident, Source
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.terms import Life, PastPhase, Term, as_of, fold
from leases.history.timeline_lanes import lanes

_TO_NOBODY = (ChangeType.EXPIRED, ChangeType.RELEASED)
NEVER = Held(0.0, 0.0)
_SAME = 0.5  # seconds between two ways to measure one gap
_BEGINS = COUNTED_ONCE | {ChangeType.CREATED, ChangeType.RECOVERED}


class AffectedLease(msgspec.Struct, frozen=True, kw_only=True):
    """One Lease of an incident. `changes` is empty if none of them is stored with the incident.

    `lost` is its watched time without a holder in seconds, `unseen` what of it nobody watched,
    `longest` the longest part of it in one piece; `open` says that it goes on.
    """

    key: ObjectName
    changes: tuple[Change, ...]
    before: str | None
    after: str | None
    lost: float
    unseen: float
    longest: Held
    open: bool

    @property
    def silent(self) -> bool:
        """Whether it is a heartbeat: nobody could have taken it over."""
        return bool(self.changes) and self.changes[0].kind is Kind.HEARTBEAT

    @property
    def lost_words(self) -> str:
        if not self.lost_for:
            return "no time without a holder seen" if self.inferred else "never without a holder"
        return f"without a holder for {self.lost_for}"

    @property
    def lost_for(self) -> str:
        """`8 m 32 s so far, 38 s more not watched`, `at most 9.3 s, none of it watched`."""
        if not self.lost and not self.unseen:
            return ""
        return lost_length(self.lost, self.unseen, " so far" if self.open else "")

    @property
    def no_time(self) -> str:
        """What a page says in place of no `lost_for`."""
        return "none seen" if self.inferred else "never"

    @property
    def inferred(self) -> bool:
        """Whether any change of it was concluded: nobody watched what was before."""
        return any(change.inferred for change in self.changes)


class AffectedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table. The middle of `lost` counts on from `lost_since` (epoch s), if that is
    set.
    """

    key: ObjectName
    shown: ShownName
    url: str
    known: bool
    before: HolderView | None
    after: HolderView | None
    lost: tuple[str, str, str]
    lost_since: float | None
    no_time: str
    bad: bool


def affected_leases(
    incident: Incident, story: Iterable[Change], now: datetime, blind: Sequence[Span] = ()
) -> list[AffectedLease]:
    """Every Lease of the incident, the longest without a holder first; nobody watched in the times
    of `blind`.
    """
    changes: dict[ObjectName, list[Change]] = {key: [] for key in incident.leases}
    for change in sorted(story, key=lambda one: (one.at, one.observed_at)):
        changes.setdefault(ObjectName(change.namespace, change.name), []).append(change)
    end = incident.ended or now
    found = [_affected(key, some, end, blind) for key, some in changes.items()]
    return sorted(found, key=lambda one: (-one.lost, -one.unseen, not one.changes, one.key))


def affected_line(cluster: str, one: AffectedLease, going_on: datetime | None) -> AffectedLine:
    """`going_on`: as of when, if the incident does."""
    after = holder_view(one.after)
    lost = _lost_in_short(one).partition(age(one.lost))
    counts = one.open and lost[1]
    return AffectedLine(
        key=one.key,
        shown=shown_name(cluster, one.key),
        url=lease_url(cluster, one.key),
        known=bool(one.changes),
        before=beside(holder_view(one.before), after),
        after=after,
        lost=lost,
        lost_since=going_on.timestamp() - one.lost if going_on and counts else None,
        no_time=one.no_time,
        bad=one.lost >= LONG_GAP_SECONDS,
    )


def _lost_in_short(one: AffectedLease) -> str:
    return f"{'silent ' if one.silent and one.lost_for else ''}{one.lost_for}"


def unseen_of_worst(
    incident: Incident, affected: Iterable[AffectedLease]
) -> tuple[ObjectName | None, str]:
    """The Lease with the longest time without a holder, and what of it nobody watched."""
    worst = max(affected, key=lambda one: _by_length(one.longest), default=None)
    gap = incident.worst_gap_seconds or 0.0
    if worst is None or abs(worst.longest.watched - gap) >= _SAME:
        return None, ""
    watched, unseen = worst.longest.watched, worst.longest.unwatched
    if worst_gap(incident):
        return worst.key, more_unwatched(unseen).removeprefix(", ")
    return (worst.key, gap_length(watched + unseen, unseen)) if unseen else (None, "")


def _by_length(gap: Held) -> tuple[float, float]:
    return gap.watched, gap.unwatched


def _affected(
    key: ObjectName, changes: Sequence[Change], end: datetime, blind: Sequence[Span]
) -> AffectedLease:
    if not changes:
        return AffectedLease(
            key=key,
            changes=(),
            before=None,
            after=None,
            lost=0.0,
            unseen=0.0,
            longest=NEVER,
            open=False,
        )
    first, last = changes[0], changes[-1]
    expired = first.change is ChangeType.EXPIRED
    gaps = _gaps(changes, end, blind)
    gone = (*_TO_NOBODY, ChangeType.DELETED)
    return AffectedLease(
        key=key,
        changes=tuple(changes),
        before=first.previous_holder or (first.holder if expired else None),
        after=None if last.change in gone else last.holder,
        lost=sum(gap.watched for gap in gaps),
        unseen=sum(gap.unwatched for gap in gaps),
        longest=max(gaps, key=_by_length, default=NEVER),
        open=last.change in _TO_NOBODY,
    )


def _gaps(changes: Sequence[Change], end: datetime, blind: Sequence[Span]) -> list[Held]:
    """The times without a valid holder, also the one that goes on at the end."""
    gaps: list[Held] = []
    since = None
    for change in changes:
        if change.change in _TO_NOBODY:
            since = since or change.at
        elif change.change in _BEGINS:
            gaps.append(gap_before(change, blind) or NEVER)
            since = None
        elif change.change is ChangeType.DELETED:
            gaps += [] if since is None else [held(since, change.at, blind)]
            since = None
    return gaps if since is None else [*gaps, held(since, end, blind)]


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

    @property
    def width(self) -> float:
        """Pixels around its label; a circle around one digit."""
        return 9.0 + 7.0 * len(self.label)

    @property
    def left(self) -> float:
        return -self.width / 2


def evidence_lines(incident: Incident, story: Iterable[Change]) -> list[EvidenceLine]:
    names = _names(incident, story)
    lines = []
    for number, (at, one) in enumerate(in_order(incident), 1):
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


def in_order(incident: Incident) -> list[tuple[datetime | None, Evidence]]:
    """The evidence by time; what names no time stays behind what it follows."""
    placed = []
    last = 0.0
    for one in incident.evidence:
        at = _moment(one.sentence, incident)
        last = last if at is None else at.timestamp()
        placed.append((last, at, one))
    return [(at, one) for _, at, one in sorted(placed, key=lambda some: some[0])]


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
    return f"{cluster_path('history', cluster)}?{urlencode(time)}"


MAX_LANES = 40
SHAPES = 24  # of one lane
_AROUND = 0.12  # of the incident's length, shown before and after it
_LEAST = timedelta(seconds=5)
_LINGERS = 3  # times as long as its changes took: what is shown after the last of them
_BEFORE = {
    ChangeType.EXPIRED: ChangeType.EXPIRED,
    ChangeType.RELEASED: ChangeType.RELEASED,
    ChangeType.DELETED: ChangeType.DELETED,
    ChangeType.REPLACED: ChangeType.REPLACED,
    ChangeType.TAKEN_OVER: ChangeType.EXPIRED,
}
_STOOD = {
    PastPhase.HELD: ("held", "st-held", "held"),
    PastPhase.EXPIRED: ("expired", "st-expired", "expired"),
    PastPhase.VACANT: ("vacant", "st-vacant", "vacant"),
    PastPhase.DELETED: ("deleted", "st-deleted", "deleted"),
    PastPhase.UNKNOWN: ("deleted", "i-minus", "unknown"),
}


def scale_of(incident: Incident, story: Sequence[Change], now: datetime) -> Scale:
    """The incident with a little of the time around it, in whole seconds. Of one that lasted much
    longer than its changes came, only the beginning; one that goes on reaches to now.
    """
    end, began = incident.ended or now, incident.began
    if story and incident.ended is not None:
        last = max(change.at for change in story)
        end = min(end, last + _LINGERS * max(_LEAST, last - began))
    around = max(_LEAST, (end - began) * _AROUND)
    until = max(began, min(now, end + around))
    since = min(began - around, until - SHORTEST).replace(microsecond=0)
    return Scale(since, until)


def lane_chart(
    incident: Incident,
    affected: Sequence[AffectedLease],
    now: datetime,
    blind: Sequence[Span] = (),
) -> dict[str, Any]:
    """The lanes of the Leases that were worst off, their axis, and the incident's stretch."""
    scale = scale_of(incident, [change for one in affected for change in one.changes], now)
    begins, ends = scale.x(incident.began), scale.x(incident.ended or now)
    shown = [one for one in affected if one.changes][:MAX_LANES]
    lives = _lives(incident.cluster, shown, scale)
    return {
        "scale": scale,
        "ticks": ticks(scale, most=7),
        "x": percent(begins),
        "width": percent(max(0.3, ends - begins)),
        "fogs": fog(blind, scale),
        "lanes": [
            _lane(incident.cluster, one, life, scale, now, blind)
            for one, life in zip(shown, lives, strict=True)
        ],
        "more": len(affected) - len(shown),
        "length": span_of(timedelta(seconds=int(scale.length.total_seconds()))),
        "cut": scale.until < (incident.ended or now),
    }


def _lives(cluster: str, shown: Sequence[AffectedLease], scale: Scale) -> list[Life]:
    """Who held them, whatever the incident knows: other incidents may lie between its changes."""
    keys = [one.key for one in shown]
    found = lanes(cluster, keys, since=scale.since, until=scale.until, counted=False)
    of = {lane.key: lane for lane in found}

    def life(one: AffectedLease) -> Life:
        own = sum(scale.since <= change.at < scale.until for change in one.changes)
        lane = of.get(one.key)
        # The story outlives the rows of its changes.
        return life_of(one.changes, scale.since) if not lane or lane.changes < own else lane.life

    return [life(one) for one in shown]


def life_of(changes: Sequence[Change], since: datetime) -> Life:
    """What the changes say, with the term that the first of them ended."""
    life, first = fold(changes), changes[0]
    holder = first.previous_holder or (first.holder if first.change is ChangeType.EXPIRED else None)
    ended = _BEFORE.get(first.change)
    if holder is None or ended is None or first.at <= since:
        return life
    until = first.at if first.gap_seconds is None else _gap_began(first)
    earlier = Term(
        holder=holder,
        uid=first.uid,
        began=None,
        since=since,
        until=max(since, until),
        ended=ended,
        observed_at=first.observed_at,
    )
    return msgspec.structs.replace(life, terms=(earlier, *life.terms))


def _gap_began(change: Change) -> datetime:
    return change.at - timedelta(seconds=change.gap_seconds or 0.0)


def _lane(
    cluster: str,
    one: AffectedLease,
    life: Life,
    scale: Scale,
    now: datetime,
    blind: Sequence[Span],
) -> dict[str, Any]:
    """As timeline/_lane.html needs it."""
    drawn = shapes(life, scale, most=SHAPES)
    standing = as_of(life, scale.until)
    css, icon, word = _STOOD[standing.phase]
    holder = holder_view(standing.holder) if standing.phase is PastPhase.HELD else None
    time = ShownTime(since=scale.since, until=scale.until)
    return {
        "key": str(one.key),
        "namespace": one.key.namespace,
        "name": one.key.name,
        "shown": shown_name(cluster, one.key),
        "url": lease_url_at(cluster, one.key, time),
        "kind": one.changes[0].kind.value,
        "dot": {"css": css, "icon": icon, "title": f"{word} at {when(scale.until, now)}"},
        "before": "unknown",
        "shapes": shape_views(drawn, now, zoom=lambda *_: "", end=scale.until, blind=blind),
        "marks": lane_marks(life, (), scale, now),
        "role": "img",
        "says": f"{one.key}: {counted(len(one.changes), 'change')}, {one.lost_words}.",
        "as_of": {
            "holder": holder,
            "word": {"expired": "no holder", "vacant": "no holder"}.get(word, word),
            "title": word,
            "css": "" if holder else "none" if word in ("expired", "vacant") else "absent",
        },
        "holder_url": "",
    }
