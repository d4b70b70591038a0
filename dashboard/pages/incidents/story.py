"""Everything that the page of one incident shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.http import QueryDict
from django.urls import reverse

from dashboard.charts.time_scale import Scale
from dashboard.pages.incidents.affected import AffectedLease, affected_leases, affected_line
from dashboard.pages.incidents.evidence import (
    evidence_lines,
    evidence_marks,
    source_count,
    without_notes,
)
from dashboard.pages.incidents.lanes import lane_chart
from dashboard.parts.change_sentence import change_line
from dashboard.parts.formatting import age, day, listed, shortened, when
from dashboard.parts.frame.list_controls import ListLinks
from dashboard.parts.incident_line import incident_line, incident_url, visible
from dashboard.parts.key_figures import KIND_WORDS
from dashboard.parts.query.list_filter import ListFilter
from dashboard.parts.query.url_parameters import MAX_PAGE_NUMBER, number, page_number
from dashboard.parts.query.url_time import write_moment
from leases.domain.cause.incident import Incident
from leases.domain.changes.change import Change
from leases.domain.severity import LONG_GAP_SECONDS
from leases.history.read.find_incidents import StoredIncident

AFFECTED, CHANGES = 25, 50  # rows of one page
MAX_TITLE = 400  # characters
_SAME = 0.5  # seconds between two ways to measure one gap


class StoryPage(ListFilter, frozen=True, kw_only=True):
    """`page` is that of the affected Leases, `changes` that of the changes."""

    PARAMETERS = {"page": "page", "changes": "changes"}
    changes: int = 1
    limit: int = AFFECTED


def read_story_page(query: QueryDict) -> StoryPage:
    """Raises BadFilter."""
    changes = number(query, "changes", default=1, largest=MAX_PAGE_NUMBER)
    return StoryPage(page=page_number(query), changes=changes)


def story_context(
    stored: StoredIncident, shown: StoryPage, as_of: datetime, now: datetime
) -> dict[str, Any]:
    """`as_of`: up to when the cluster is known; an incident that goes on does so until then."""
    one = stored.incident
    affected = affected_leases(one, stored.story, as_of)
    chart = lane_chart(one, affected, as_of)
    evidence = evidence_lines(one, stored.story)
    return {
        "line": incident_line(one, as_of),
        "title": shortened(visible(one.sentence), MAX_TITLE),
        "facts": _facts(one, affected, as_of),
        "chart": chart,
        "evidence": evidence,
        "evidence_marks": evidence_marks(evidence, chart["scale"]),
        "sources": source_count(one),
        "without": without_notes(one),
        "writer": one.writer,
        "settled": one.settled,
        **_tables(stored, affected, shown, now),
        **_links(one, chart["scale"]),
    }


def _tables(
    stored: StoredIncident, affected: Sequence[AffectedLease], shown: StoryPage, now: datetime
) -> dict[str, Any]:
    """A page of the affected Leases, and one of the changes."""
    cluster, story = stored.incident.cluster, stored.story
    links = ListLinks(incident_url(cluster, stored.incident.id), shown)
    page, rows = shown.page_of(len(affected))
    paging = shown.replace(page=shown.changes, limit=CHANGES)
    changes_page, lines = paging.page_of(len(story))
    last = changes_page * CHANGES
    return {
        "affected": [affected_line(cluster, one) for one in affected[rows]],
        "pager": links.pager(page, len(affected)),
        "changes": [change_line(_bare(change), now) for change in story[lines]],
        "change_count": stored.changes,
        "unstored": stored.changes - len(story),
        "changes_of": (lines.start + 1, min(last, len(story)), len(story)),
        "earlier_changes": (
            links.url(page=page, changes=changes_page - 1) if changes_page > 1 else ""
        ),
        "later_changes": (
            links.url(page=page, changes=changes_page + 1) if last < len(story) else ""
        ),
    }


def _bare(change: Change) -> Change:
    """Without the cause, which is that of the whole page."""
    return msgspec.structs.replace(change, cause=None, incident=None)


def _facts(one: Incident, affected: Sequence[AffectedLease], as_of: datetime) -> dict[str, Any]:
    """The key figures, each with a caption."""
    worst = max(affected, key=lambda lease: lease.longest, default=None)
    longest = worst.longest if worst else 0.0
    gap = max(one.worst_gap_seconds or 0.0, longest)
    kinds = Counter(lease.changes[0].kind for lease in affected if lease.changes)
    complete = kinds.total() == len(affected)  # else the changes of some are not stored
    said = [f"{number:,} {KIND_WORDS[kind][number > 1]}" for kind, number in kinds.most_common()]
    return {
        "began": when(one.began, one.began),
        "began_day": f"{day(one.began)}, UTC",
        "length": age(((one.ended or as_of) - one.began).total_seconds()),
        "ended": f"at {when(one.ended, one.began)}" if one.ended else "",
        "gap": age(gap) if gap else "none",
        "gap_is_long": gap >= LONG_GAP_SECONDS,
        "gap_of": worst.key.name if worst and longest > gap - _SAME else "",
        "leases": len(one.leases),
        "kinds": listed(said) if complete else "",
        "hosts": len(one.hosts),
        "host_names": listed([shortened(visible(host), 40) for host in one.hosts], 2),
    }


def _links(one: Incident, scale: Scale) -> dict[str, str]:
    """The timeline and the history of the same stretch."""
    key = one.leases[0] if len(one.leases) == 1 else None
    since, until = write_moment(scale.since), write_moment(scale.until)
    timeline = {"from": since, "to": until} | ({"q": str(key)} if key else {})
    history = {"since": since, "until": until}
    history |= {"namespace": key.namespace, "lease": key.name} if key else {}
    url = incident_url(one.cluster, one.id)
    return {
        "timeline_url": f"{reverse('timeline', args=[one.cluster])}?{urlencode(timeline)}",
        "history_url": f"{reverse('history', args=[one.cluster])}?{urlencode(history)}",
        "markdown_url": f"{url}?format=markdown",
        "json_url": f"{url}?format=json",
        "page_url": url,
    }
