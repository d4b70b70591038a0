"""The incidents of a stretch of time, for the pages that show a stretch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.urls import reverse

from dashboard.board import running_board
from dashboard.charts.incident_bands import Band, incident_bands
from dashboard.charts.time_scale import Scale
from dashboard.parts.formatting import age, counted, when
from dashboard.parts.incident_line import incident_url, visible
from dashboard.parts.lease.change_cause import said_cause
from dashboard.parts.query.url_time import write_moment
from leases.domain.cause.incident import Incident
from leases.domain.lease import ObjectName
from leases.history.read.find_incidents import find_incidents

MOST = 200  # incidents of one answer


class IncidentBand(msgspec.Struct, frozen=True):
    """One or more incidents on a chart; `says` names them."""

    x: float
    width: float
    url: str
    says: str


def incidents_between(cluster: str, since: datetime, until: datetime) -> list[Incident]:
    """The newest MOST incidents that went on at any time of the stretch, oldest first."""
    found = find_incidents(cluster, since=since, until=until, limit=MOST)
    known = {one.incident.id: one.incident for one in found}
    for incident in running_board().publisher.hubs[cluster].going_on():
        if incident.began < until:
            known[incident.id] = incident
    return sorted(known.values(), key=lambda one: (one.began, one.id))


def incidents_url(cluster: str, since: datetime, until: datetime) -> str:
    """The list of incidents that went on in a stretch."""
    second = timedelta(seconds=1)
    ends = {"from": since.replace(microsecond=0), "to": until.replace(microsecond=0) + second}
    query = urlencode({name: write_moment(moment) for name, moment in ends.items()})
    return f"{reverse('incidents', args=[cluster])}?{query}"


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
        return IncidentBand(band.x, band.width, url, says)
    length = age(((first.ended or now) - first.began).total_seconds())
    on = "going on for" if first.ended is None else "for"
    says = f"{said_cause(first)}, from {when(first.began, now)} {on} {length}: "
    says += visible(first.sentence)
    return IncidentBand(band.x, band.width, incident_url(cluster, first.id), says)


def _sentences(found: Sequence[Incident]) -> str:
    shown = "; ".join(visible(one.sentence) for one in found[:3])
    return shown if len(found) <= 3 else f"{shown}; and {len(found) - 3:,} more"


def incident_summary(
    cluster: str, incidents: Sequence[Incident], scale: Scale, now: datetime
) -> dict[str, Any]:
    """All incidents of a stretch: how many, the way to their list, and their bands."""
    number = len(incidents)
    return {
        "number": number,
        "says": f"{'newest ' if number >= MOST else ''}{counted(number, 'incident')}",
        "url": incidents_url(cluster, scale.since, scale.until),
        "bands": bands_of(cluster, incidents, scale, now),
    }
