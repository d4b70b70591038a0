"""One incident: its story, who was affected, and what people noted."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import msgspec
from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.charts.time_axis import Scale
from dashboard.forms.admin_form import NUL
from dashboard.lists import responses
from dashboard.lists.controls import ListLinks
from dashboard.lists.url_parameters import (
    MAX_PAGE_NUMBER,
    PAGE,
    BadFilter,
    ListFilter,
    Parameter,
    number,
    write_moment,
)
from dashboard.pages.incidents.evidence import (
    AffectedLease,
    affected_leases,
    affected_line,
    evidence_lines,
    evidence_marks,
    lane_chart,
    scale_of,
    source_count,
    unseen_of_worst,
    without_notes,
)
from dashboard.pages.incidents.list import file_name, incident_item
from dashboard.pages.incidents.markdown import incident_markdown
from dashboard.parts.change_sentence import User, authors_of, signed_lines
from dashboard.parts.formatting import day, elapsed, listed, shortened, when
from dashboard.parts.incident_line import (
    as_known,
    beside_lines,
    incident_line,
    incident_url,
    no_gap,
    same_time_items,
    visible,
    worst_gap,
)
from dashboard.parts.key_figures import KIND_WORDS
from dashboard.parts.names import cluster_path
from leases.domain.change import Change
from leases.domain.figures import LONG_GAP_SECONDS, Span
from leases.domain.incident import Incident
from leases.domain.kind import Kind
from leases.history import find_incidents, outbox
from leases.history.deliveries import messages_of
from leases.history.outbox import acknowledgement_of
from leases.history.watched_spans import blind_between, watched_since

MAX_NOTE = 4000  # characters
MAX_NOTES = 200  # of one incident


class NoteForm(forms.Form):
    """The text of a note."""

    text = forms.CharField(
        label="Add a note",
        max_length=MAX_NOTE,
        error_messages={
            **NUL,
            "required": "Write what you found out.",
            "max_length": f"Use {MAX_NOTE:,} characters at most. These are %(show_value)s.",
        },
    )

    def __init__(self, *args: object, notes: int, **kwargs: object) -> None:
        """`notes`: how many the incident has."""
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._notes = notes

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        if self._notes >= MAX_NOTES:
            raise forms.ValidationError(f"An incident takes {MAX_NOTES} notes, and has them.")
        return "\n".join(text.splitlines())


AFFECTED, CHANGES = 25, 50  # rows of one page
MAX_TITLE = 400  # characters


class StoryPage(ListFilter, frozen=True, kw_only=True):
    """`page` is that of the affected Leases, `changes` that of the changes."""

    PARAMETERS = {"page": PAGE, "changes": Parameter("changes", number, MAX_PAGE_NUMBER)}
    changes: int = 1
    limit: int = AFFECTED


def story_context(
    stored: find_incidents.StoredIncident,
    shown: StoryPage,
    user: User,
    as_of: datetime,
    now: datetime,
) -> dict[str, Any]:
    """`as_of`: up to when the cluster is known; an incident that goes on does so until then."""
    one = stored.incident
    care = outbox.care([one])
    blind = _blind(stored, as_of)
    affected = affected_leases(one, stored.story, as_of, blind)
    chart = lane_chart(one, affected, as_of, blind)
    evidence = evidence_lines(one, stored.story)
    return {
        "line": incident_line(one, as_of, care),
        "title": shortened(visible(one.sentence), MAX_TITLE),
        "facts": _facts(one, affected, as_of),
        "chart": chart,
        "evidence": evidence,
        "evidence_marks": evidence_marks(evidence, chart["scale"]),
        "sources": source_count(one),
        "without": without_notes(one),
        "writer": one.writer,
        "beside": beside_lines([one], now).get(one.id, ()),
        "settled": one.settled,
        **_tables(stored, affected, shown, user, as_of, now),
        **_links(one, chart["scale"]),
    }


def _tables(
    stored: find_incidents.StoredIncident,
    affected: Sequence[AffectedLease],
    shown: StoryPage,
    user: User,
    as_of: datetime,
    now: datetime,
) -> dict[str, Any]:
    """A page of the affected Leases, and one of the changes."""
    cluster, story = stored.incident.cluster, stored.story
    going_on = as_of if stored.incident.ended is None else None
    links = ListLinks(incident_url(cluster, stored.incident.id), shown)
    page, rows = shown.page_of(len(affected))
    paging = shown.replace(page=shown.changes, limit=CHANGES)
    changes_page, lines = paging.page_of(len(story))
    last = changes_page * CHANGES
    return {
        "affected": [affected_line(cluster, one, going_on) for one in affected[rows]],
        "pager": links.pager(page, len(affected)),
        "changes": signed_lines(list(map(_bare, story[lines])), now, user),
        "change_count": stored.changes,
        "unlisted": stored.incident.lease_count - len(stored.incident.leases),
        "unstored": stored.changes - len(story),
        "changes_of": (lines.start + 1, min(last, len(story)), len(story)),
        "earlier_changes": (
            links.url(page=page, changes=changes_page - 1) if changes_page > 1 else ""
        ),
        "later_changes": (
            links.url(page=page, changes=changes_page + 1) if last < len(story) else ""
        ),
    }


def _blind(stored: find_incidents.StoredIncident, as_of: datetime) -> Sequence[Span]:
    """The times of an incident, and of its lanes, that nobody watched."""
    one, story = stored.incident, stored.story
    shown = scale_of(one, story, as_of)
    gaps = (timedelta(seconds=change.gap_seconds or 0.0) for change in story)
    earliest = min([shown.since, *(x.at - gap for x, gap in zip(story, gaps, strict=True))])
    if watched_since(one.cluster) is None:  # nobody noted when it was watched
        return ()
    until = max(shown.until, one.ended or as_of)
    return blind_between(one.cluster, since=earliest, until=until, now=as_of)


def _bare(change: Change) -> Change:
    """Without the cause, which is that of the whole page."""
    return msgspec.structs.replace(change, cause=None, incident=None)


def _facts(one: Incident, affected: Sequence[AffectedLease], as_of: datetime) -> dict[str, Any]:
    """The key figures, each with a caption; the worst gap is the one that lists and JSON have."""
    gap_of, gap_unseen = unseen_of_worst(one, affected)
    kinds = Counter(lease.changes[0].kind for lease in affected if lease.changes)
    complete = kinds.total() == len(affected)  # else the changes of some are not stored
    said = [f"{number:,} {KIND_WORDS[kind][number > 1]}" for kind, number in kinds.most_common()]
    return {
        "began": when(one.began, one.began),
        "began_day": day(one.began),
        "ended_at": one.ended,
        "length": elapsed(one.began, one.ended or as_of).length,
        "ended": f"at {when(one.ended, one.began)}" if one.ended else "",
        "gap": worst_gap(one) or no_gap(one),
        "gap_is_long": (one.worst_gap_seconds or 0.0) >= LONG_GAP_SECONDS,
        "gap_of": gap_of.name if gap_of else "",
        "gap_unseen": gap_unseen or _free(one, affected),
        "leases": one.lease_count,
        "kinds": listed(said) if complete else "",
        "hosts": len(one.hosts),
        "host_names": listed([shortened(visible(host), 40) for host in one.hosts], 2),
    }


def _free(one: Incident, affected: Sequence[AffectedLease]) -> str:
    """Why nothing is counted while a lock has no holder."""
    if one.ended or worst_gap(one):
        return ""
    free = any(lease.open and lease.changes[0].kind is Kind.LOCK for lease in affected)
    return "nobody waits for a lock: counted once it is over" if free else ""


def _links(one: Incident, scale: Scale) -> dict[str, str]:
    """The timeline and the history of the same stretch."""
    key = one.leases[0] if len(one.leases) == 1 else None
    since, until = write_moment(scale.since), write_moment(scale.until)
    timeline = {"from": since, "to": until} | ({"q": str(key)} if key else {})
    history = {"since": since, "until": until}
    history |= {"namespace": key.namespace, "lease": key.name} if key else {}
    url = incident_url(one.cluster, one.id)
    return {
        "timeline_url": f"{cluster_path('timeline', one.cluster)}?{urlencode(timeline)}",
        "history_url": f"{cluster_path('history', one.cluster)}?{urlencode(history)}",
        "markdown_url": f"{url}?format=markdown",
        "json_url": f"{url}?format=json",
        "page_url": url,
    }


FORMATS = ("", "html", "json", "markdown")
TEMPLATES = ("incidents/incident.html", "incidents/_story.html")


@require_http_methods(["GET", "HEAD", "POST"])
@viewer_required
def incident(request: ClusterRequest, cluster: str, incident: str) -> HttpResponseBase:
    """GET shows it, or answers as JSON or Markdown; POST adds a note."""
    now = clock.now()
    try:
        answer_as = responses.read_format(request, FORMATS)
        shown = StoryPage.read(request.GET)
    except BadFilter as error:
        return _refuse(request, error)
    stored = find_incidents.incident_of(cluster, incident)
    if stored is None:
        raise Http404(
            f"{cluster} has no incident {incident[:80]!r}. Look in the list of incidents."
        )
    (known,) = as_known([stored.incident], request.cluster.as_of(now))
    stored = msgspec.structs.replace(stored, incident=known)
    if stored.incident.id != incident:  # it became part of another one
        return redirect("incident", cluster, stored.incident.id)
    notes = find_incidents.notes_of(cluster, incident)
    form = NoteForm(request.POST if request.method == "POST" else None, notes=len(notes))
    if form.is_valid():
        _add(request, stored, notes, form.cleaned_data["text"], now)
        return redirect(f"{incident_url(cluster, incident)}#notes")
    if answer_as == "json":
        same_time = same_time_items([stored.incident]).get(stored.incident.id, [])
        item = incident_item(stored.incident, stored.changes) | {"same_time_as": same_time}
        return responses.json(item | responses.unless_live(request.cluster, now))
    if answer_as == "markdown":
        return _markdown(request, stored, notes, now)
    return _page(request, stored, notes, form, shown, now)


def _page(
    request: ClusterRequest,
    stored: find_incidents.StoredIncident,
    notes: list[find_incidents.StoredNote],
    form: NoteForm,
    shown: StoryPage,
    now: datetime,
) -> HttpResponse:
    as_of = request.cluster.as_of(now)
    context: dict[str, Any] = story_context(stored, shown, request.user, as_of, now)
    place = stored.incident.cluster, stored.incident.id
    context |= {
        "author": authors_of([stored.incident], request.user).get(stored.incident.id),
        "notes": notes,
        "form": form,
        "sent": messages_of(*place),
        "acknowledged": acknowledgement_of(*place),
        "acknowledge_url": reverse("acknowledge_incident", args=place),
    }
    status = 422 if form.errors else 200
    return responses.page(request, *TEMPLATES, context, query=shown.query(), status=status)


def _add(
    request: ClusterRequest,
    stored: find_incidents.StoredIncident,
    notes: list[find_incidents.StoredNote],
    text: str,
    now: datetime,
) -> None:
    """Store a note. A form that is sent twice stores one."""
    who = request.user.get_username()
    if not notes or (notes[-1].who, notes[-1].text) != (who, text):
        one = stored.incident
        find_incidents.add_note(one.cluster, one.id, who=who, at=now, text=text)
    messages.success(request, "The note is added.")


def _markdown(
    request: ClusterRequest,
    stored: find_incidents.StoredIncident,
    notes: list[find_incidents.StoredNote],
    now: datetime,
) -> HttpResponse:
    one = stored.incident
    as_of = request.cluster.as_of(now)
    text = incident_markdown(
        one,
        affected_leases(stored.incident, stored.story, as_of, _blind(stored, as_of)),
        stored.story,
        notes,
        url=request.build_absolute_uri(incident_url(one.cluster, one.id)),
        now=as_of,
    )
    answer = HttpResponse(text, content_type="text/markdown; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{file_name(one)}.md"'
    return answer


def _refuse(request: ClusterRequest, refused: BadFilter) -> HttpResponse:
    if request.GET.get("format") in (None, "", "html"):
        context = {"error": str(refused), "page_url": request.path}
        return responses.page(request, *TEMPLATES, context, status=400)
    return responses.json({"error": str(refused)}, status=400)


@require_POST
@viewer_required
def acknowledge_incident(request: ClusterRequest, cluster: str, incident: str) -> HttpResponseBase:
    """POST acknowledges, with `take` also what another person did; with `back` it takes that back;
    with `over` it ends the incident by decision.
    """
    stored = find_incidents.incident_of(cluster, incident)
    if stored is None:
        raise Http404(f"{cluster} has no incident {incident[:80]!r}.")
    number, who, now = stored.incident.id, request.user.get_username(), clock.now()
    before, note = outbox.acknowledgement_of(cluster, number), ""
    (known,) = as_known([stored.incident], request.cluster.as_of(now))
    if request.POST.get("back") and before and before.over_at and stored.incident.ended:
        told = "It is over by now, whatever anybody decided. Nothing changed."
    elif request.POST.get("back"):
        outbox.take_back(known, at=now)
        if before is not None:
            care = f"I took back that {before.who} takes care of it."
            note = "I decided that it goes on." if before.over_at else care
        told = "Nobody takes care of it now. Receivers hear of it if it worsens."
        if before is not None and before.over_at:
            told = "It goes on. Receivers that heard that it is over hear so."
            if outbox.acknowledgement_of(cluster, number) is not None:
                told = f"{told} {before.who} takes care of it as before."
    elif request.POST.get("over") and stored.incident.ended is None:
        outbox.decide_over(known, who=who, at=now)
        note = "I decided that it is over."
        told = "It is over, as you decided. Receivers that heard of it hear so."
    else:
        take = bool(request.POST.get("take"))
        found = outbox.acknowledge(cluster, number, who=who, at=now, take_over=take)
        if take and before is not None and before.who != who:
            note = f"I took it over from {before.who}."
        told = f"{found.who} takes care of this incident."
    if note:
        find_incidents.add_note(cluster, number, who=who, at=now, text=note)
    messages.success(request, told)
    return redirect(f"{incident_url(cluster, number)}#notifications")
