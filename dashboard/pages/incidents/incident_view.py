"""One incident: its story, its evidence, who was affected, and what people noted."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.pages.incidents.affected import affected_leases
from dashboard.pages.incidents.export import file_name, incident_item
from dashboard.pages.incidents.markdown import incident_markdown
from dashboard.pages.incidents.note_form import NoteForm
from dashboard.pages.incidents.story import StoryPage, read_story_page, story_context
from dashboard.parts.frame import responses
from dashboard.parts.incident_line import incident_url
from dashboard.parts.query.url_parameters import BadFilter
from leases.history.notify.acknowledgements import acknowledgement_of
from leases.history.notify.delivery_log import messages_of
from leases.history.read.find_incidents import (
    StoredIncident,
    StoredNote,
    add_note,
    incident_of,
    notes_of,
)

FORMATS = ("", "html", "json", "markdown")
TEMPLATES = ("incidents/incident.html", "incidents/_story.html")


@require_http_methods(["GET", "HEAD", "POST"])
@viewer_required
def incident(request: ClusterRequest, cluster: str, incident: str) -> HttpResponseBase:
    """GET shows it, or answers as JSON or Markdown; POST adds a note."""
    now = clock.now()
    try:
        answer_as = responses.read_format(request, FORMATS)
        shown = read_story_page(request.GET)
    except BadFilter as error:
        return _refuse(request, error)
    stored = incident_of(cluster, incident)
    if stored is None:
        raise Http404(
            f"{cluster} has no incident {incident[:80]!r}. Look in the list of incidents."
        )
    if stored.incident.id != incident:  # it became part of another one
        return redirect("incident", cluster, stored.incident.id)
    notes = notes_of(cluster, incident)
    form = NoteForm(request.POST if request.method == "POST" else None, notes=len(notes))
    if form.is_valid():
        _add(request, stored, notes, form.cleaned_data["text"], now)
        return redirect(f"{incident_url(cluster, incident)}#notes")
    if answer_as == "json":
        item = incident_item(stored.incident, stored.changes)
        return responses.json(item | responses.unless_live(request.cluster, now))
    if answer_as == "markdown":
        return _markdown(request, stored, notes, now)
    return _page(request, stored, notes, form, shown, now)


def _page(
    request: ClusterRequest,
    stored: StoredIncident,
    notes: list[StoredNote],
    form: NoteForm,
    shown: StoryPage,
    now: datetime,
) -> HttpResponse:
    context: dict[str, Any] = story_context(stored, shown, request.cluster.as_of(now), now)
    place = stored.incident.cluster, stored.incident.id
    context |= {
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
    stored: StoredIncident,
    notes: list[StoredNote],
    text: str,
    now: datetime,
) -> None:
    """Store a note. A form that is sent twice stores one."""
    who = request.user.get_username()
    if not notes or (notes[-1].who, notes[-1].text) != (who, text):
        one = stored.incident
        add_note(one.cluster, one.id, who=who, at=now, text=text)
    messages.success(request, "The note is added.")


def _markdown(
    request: ClusterRequest, stored: StoredIncident, notes: list[StoredNote], now: datetime
) -> HttpResponse:
    one = stored.incident
    as_of = request.cluster.as_of(now)
    text = incident_markdown(
        one,
        affected_leases(one, stored.story, as_of),
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
