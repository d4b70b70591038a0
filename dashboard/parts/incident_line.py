"""One incident as a line, wherever a page speaks of one; and the incidents of a stretch of time."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import msgspec

from dashboard.board import running_board
from dashboard.charts.time_axis import Band, Scale, incident_bands
from dashboard.lists.url_parameters import write_moment
from dashboard.parts import cause_words
from dashboard.parts.formatting import age, capitalized, counted, elapsed, listed, shortened, when
from dashboard.parts.names import cluster_path
from leases.domain.cause import going_on
from leases.domain.cause.clue import FORM_WRITER, is_human_writer
from leases.domain.change import Change
from leases.domain.figures import LONG_GAP_SECONDS, Span
from leases.domain.incident import Cause, Confidence, ElsewhereIncident, Incident, Standing
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.notify import is_quiet
from leases.history.find_incidents import count_incidents, find_incidents, incidents_beside
from leases.history.outbox import Care
from leases.history.watched_spans import blind_between, watched_since

MAX_SENTENCE = 400  # characters: names may be long
_LATE = (Cause.API_SLOW, Cause.CLOCK_SKEW, Cause.FLAPPING)
_VACANT = (
    Cause.BY_HAND, Cause.DELETED, Cause.DRAIN, Cause.GRACEFUL_STOP, Cause.PREFERRED_HOLDER,
    Cause.RESTART_IN_PLACE, Cause.ROLLOUT, Cause.SCALED_DOWN,
)  # fmt: skip
_PLANNED = {Standing.PLANNED: "planned", Standing.OVERRAN: "planned, took too long"}
_HIDDEN = {
    code: f"\\u{code:04x}"
    for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
} | {0: "\N{SYMBOL FOR NULL}"}


class CauseView(msgspec.Struct, frozen=True):
    """A cause with its confidence; `bars` says which of the three bars are filled."""

    word: str
    icon: str
    meaning: str
    confidence: str
    confidence_meaning: str
    bars: tuple[bool, bool, bool]
    css: str = ""


class BesideLine(msgspec.Struct, frozen=True):
    """An incident of another cluster that began at the same time."""

    cluster: str
    url: str
    says: str


class IncidentLine(msgspec.Struct, frozen=True, kw_only=True):
    """`length` counts up from `since` (epoch s) while the incident goes on, and so does `worst`
    from `worst_since` while nobody holds the Lease that waits longest; see `as_known`.
    """

    id: str
    cluster: str
    url: str
    cause: CauseView
    sentence: str
    began: datetime
    moment: str
    going_on: bool
    css: str  # "" once it is over
    length: str
    since: float
    leases: int
    hosts: int
    worst: str
    no_gap: str
    worst_is_long: bool
    worst_since: float | None = None
    planned: str = ""  # in words; "" if it was unplanned
    care: str = ""  # who takes care of it, and whether it is muted

    @property
    def at_once(self) -> bool:
        """Whether it was over in an instant."""
        return not self.going_on and self.length == age(0)

    @property
    def extent(self) -> str:
        """`4 Leases, 4 hosts`."""
        hosts = counted(self.hosts, "host") if self.hosts else ""
        return ", ".join(filter(None, (counted(self.leases, "Lease"), hosts)))


def incident_url(cluster: str, incident: str) -> str:
    return f"{cluster_path('incidents', cluster)}{incident}/"


def cause_view(cause: Cause, confidence: Confidence) -> CauseView:
    filled = cause_words.CONFIDENCE_BARS[confidence]
    return CauseView(
        word=cause_words.CAUSE_WORDS[cause],
        icon=cause_words.CAUSE_ICONS[cause],
        meaning=cause_words.CAUSE_MEANINGS[cause],
        confidence=capitalized(confidence.value),
        confidence_meaning=cause_words.CONFIDENCE_MEANINGS[confidence],
        bars=(filled > 0, filled > 1, filled > 2),
    )


def _cause_of(incident: Incident) -> CauseView:
    """Its cause, with the mark of the timeline where a form of ours did it."""
    view = cause_view(incident.cause, incident.confidence)
    if incident.writer != FORM_WRITER:
        return view
    here = {"icon": "i-edit", "css": "edited"}
    return msgspec.structs.replace(view, meaning="A person wrote it through a form.", **here)


def care_words(care: Care, incident: Incident, now: datetime) -> str:
    """`ada takes care of it, since 03:41; muted`."""
    taken, said = care.taken.get((incident.cluster, incident.id)), []
    if taken is not None:
        what = "says that it is over" if taken.over_at else "takes care of it"
        said.append(f"{taken.who} {what}, since {when(taken.over_at or taken.at, now)}")
    if incident.ended is None and is_quiet(care.quiet, incident.cluster, incident.leases, now):
        said.append("muted")
    return "; ".join(said)


def as_known(incidents: Iterable[Incident], as_of: datetime) -> list[Incident]:
    """Incidents of one cluster, with the time without a holder that goes on as of then.

    `unheld_since` is left to those where that is the longest one.
    """
    found = list(incidents)
    waits = {one.unheld_since: one.cluster for one in found if one.unheld_since is not None}
    since = min(waits, default=None)
    blind: Sequence[Span] = ()
    if since is not None and watched_since(waits[since]) is not None:  # somebody noted it
        blind = blind_between(waits[since], since=since, until=max(since, as_of), now=as_of)
    return [_as_known(one, as_of, blind) for one in found]


def _as_known(incident: Incident, as_of: datetime, blind: Sequence[Span]) -> Incident:
    known = going_on.so_far(incident, as_of, blind)
    is_longest = known.worst_gap_seconds != incident.worst_gap_seconds
    return known if is_longest else msgspec.structs.replace(known, unheld_since=None)


def worst_gap(incident: Incident) -> str:
    """The longest time without a holder: `16 s`; "" where there was none that one can see."""
    said = age(incident.worst_gap_seconds or 0.0)
    return "" if said == age(0) else said


def no_gap(incident: Incident) -> str:
    """What stands where there is none: a lock's is counted once it is over, and what flaps is held
    by one after another."""
    is_sure = incident.ended is not None or incident.cause is Cause.FLAPPING
    return "none seen" if is_sure else "not over"


def incident_line(incident: Incident, now: datetime, care: Care | None = None) -> IncidentLine:
    """Present an incident as of `now`."""
    gap = incident.worst_gap_seconds
    lasted = elapsed(incident.began, incident.ended or now)
    worst, waits = worst_gap(incident), incident.unheld_since is not None
    return IncidentLine(
        id=incident.id,
        cluster=incident.cluster,
        url=incident_url(incident.cluster, incident.id),
        cause=_cause_of(incident),
        sentence=shortened(visible(incident.sentence), MAX_SENTENCE),
        began=incident.began,
        moment=when(incident.began, now),
        going_on=incident.ended is None,
        css=css_of(incident),
        length=lasted.length,
        since=lasted.since,
        leases=incident.lease_count,
        hosts=len(incident.hosts),
        worst=worst,
        no_gap=no_gap(incident),
        worst_since=now.timestamp() - gap if gap and worst and waits else None,
        worst_is_long=gap is not None and gap >= LONG_GAP_SECONDS,
        planned=_PLANNED.get(incident.standing, ""),
        care="" if care is None else care_words(care, incident, now),
    )


def beside_lines(incidents: Sequence[Incident], now: datetime) -> dict[str, list[BesideLine]]:
    """What `at_the_same_time` finds in other clusters, by the id of each of these."""
    watched = list(running_board().clusters)
    if len(watched) == 1 or not incidents:
        return {}
    found = incidents_beside(incidents, watched)
    return {number: [_beside(one, now) for one in some] for number, some in found.items()}


def same_time_items(incidents: Sequence[Incident]) -> dict[str, list[dict[str, str]]]:
    """The same as JSON says it: an incident without any has no entry."""
    watched = list(running_board().clusters)
    found = incidents_beside(incidents, watched) if len(watched) > 1 and incidents else {}
    return {
        number: [{"cluster": one.cluster, "id": one.id} for one in some]
        for number, some in found.items()
    }


def _beside(one: ElsewhereIncident, now: datetime) -> BesideLine:
    names = listed([shortened(visible(host), 40) for host in one.hosts], 2)
    cause = "its cause is not known either" if one.cause is Cause.UNKNOWN else "with the same cause"
    alike = f"a host is called {names} in both" if names else ""
    says = ", ".join(filter(None, (f"began {when(one.began, now)}", cause, alike)))
    sentence = shortened(visible(one.sentence), MAX_SENTENCE)
    return BesideLine(one.cluster, incident_url(one.cluster, one.id), f"{sentence} ({says})")


def visible(text: str) -> str:
    """The text with the characters that turn its direction as escapes, such as `\\u202e`."""
    return text.translate(_HIDDEN)


def css_of(incident: Incident) -> str:
    """The phase whose colour it has; "" once it is over."""
    if incident.ended is not None:
        return ""
    if incident.cause in _LATE:
        return "late"
    return "vacant" if incident.cause in _VACANT else "expired"


LOOKING = "Looking for the cause"
SETTLES = timedelta(minutes=2)  # a cause may become known, or better, for so long


class ChangeCause(msgspec.Struct, frozen=True):
    """Why a change happened, with the link to its incident."""

    word: str
    icon: str
    meaning: str
    url: str


def said_cause(incident: Incident) -> str:
    """`Node down, likely`; before it is settled `Node down, likely so far`."""
    if incident.cause is Cause.UNKNOWN:
        return "Cause not known" if incident.settled else LOOKING
    so_far = "" if incident.settled else " so far"
    cause = capitalized(cause_words.CAUSE_WORDS[incident.cause])
    return f"{cause}, {incident.confidence.value}{so_far}"


def change_cause(change: Change, now: datetime) -> ChangeCause | None:
    """None if the change belongs to no incident: changes of earlier versions, and innocent ones."""
    if change.cause is None or change.incident is None:
        return None
    url = incident_url(change.cluster, change.incident)
    if change.cause is Cause.UNKNOWN:
        sought = now - change.observed_at < SETTLES
        word = "not known yet" if sought else "cause not known"
        return ChangeCause(
            word,
            cause_words.CAUSE_ICONS[change.cause],
            cause_words.CAUSE_MEANINGS[change.cause],
            url,
        )
    return ChangeCause(
        cause_words.CAUSE_WORDS[change.cause],
        cause_words.CAUSE_ICONS[change.cause],
        cause_words.CAUSE_MEANINGS[change.cause],
        url,
    )


def written_by_hand(change: Change) -> bool:
    """Whether the writer is a tool of people. The programs that use locks are such tools too."""
    return (
        change.writer is not None
        and change.kind is not Kind.LOCK
        and is_human_writer(change.writer)
    )


MOST = 200  # incidents of one answer


class IncidentBand(msgspec.Struct, frozen=True):
    """One or more incidents on a chart; `says` names them."""

    x: float
    width: float
    url: str
    says: str
    since: datetime


def incidents_between(cluster: str, since: datetime, until: datetime) -> list[Incident]:
    """The newest MOST unplanned incidents that went on at any time of the stretch, oldest first."""
    found = find_incidents(cluster, since=since, until=until, planned=False, limit=MOST)
    known = {one.incident.id: one.incident for one in found}
    for incident in running_board().feeds[cluster].going_on():
        if incident.began < until and incident.shown:
            known[incident.id] = incident
    return sorted(known.values(), key=lambda one: (one.began, one.id))


def incidents_url(cluster: str, since: datetime, until: datetime, *, planned: bool = False) -> str:
    """The list of incidents that went on in a stretch."""
    second = timedelta(seconds=1)
    ends = {"from": since.replace(microsecond=0), "to": until.replace(microsecond=0) + second}
    given = {name: write_moment(moment) for name, moment in ends.items()}
    query = urlencode(given | ({"show": "all"} if planned else {}))
    return f"{cluster_path('incidents', cluster)}?{query}"


def bands_of(
    cluster: str, incidents: Iterable[Incident], scale: Scale, now: datetime
) -> list[IncidentBand]:
    """The incidents as bands along a scale."""
    spans = ((one.began, one.ended or now, one) for one in incidents)
    return [_band(cluster, band, now) for band in incident_bands(spans, scale)]


def bands_by_lease(
    cluster: str,
    incidents: Sequence[Incident],
    keys: Collection[ObjectName],
    scale: Scale,
    now: datetime,
) -> Mapping[ObjectName, list[IncidentBand]]:
    """The bands on each of these Leases' lanes that has any."""
    wanted = frozenset(keys)
    mine: dict[ObjectName, list[Incident]] = {}
    for incident in incidents:
        for key in wanted.intersection(incident.leases):
            mine.setdefault(key, []).append(incident)
    return {key: bands_of(cluster, some, scale, now) for key, some in mine.items()}


def _band(cluster: str, band: Band[Incident], now: datetime) -> IncidentBand:
    first = band.found[0]
    if len(band.found) > 1:
        span = f"{when(band.since, now)} to {when(band.until, now)}"
        says = f"{counted(len(band.found), 'incident')}, {span}: {_sentences(band.found)}"
        url = incidents_url(cluster, first.began, band.found[-1].began)
        return IncidentBand(band.x, band.width, url, says, band.since)
    length = age(((first.ended or now) - first.began).total_seconds())
    on = "going on for" if first.ended is None else "for"
    says = f"{said_cause(first)}, from {when(first.began, now)} {on} {length}: "
    says += visible(first.sentence)
    url = incident_url(cluster, first.id)
    return IncidentBand(band.x, band.width, url, says, band.since)


def _sentences(found: Sequence[Incident]) -> str:
    shown = "; ".join(visible(one.sentence) for one in found[:3])
    return shown if len(found) <= 3 else f"{shown}; and {len(found) - 3:,} more"


def incident_summary(
    cluster: str, incidents: Sequence[Incident], scale: Scale, now: datetime
) -> dict[str, Any]:
    """The unplanned incidents of a stretch: how many, the way to their list, their bands, and
    how many there are with those that were planned.
    """
    number = len(incidents)
    every = sum(count_incidents(cluster, since=scale.since, until=scale.until).values())
    return {
        "number": number,
        "says": f"{'newest ' if number >= MOST else ''}{counted(number, 'incident')}",
        "url": incidents_url(cluster, scale.since, scale.until),
        "every": max(every, number),
        "every_url": incidents_url(cluster, scale.since, scale.until, planned=True),
        "bands": bands_of(cluster, incidents, scale, now),
    }
