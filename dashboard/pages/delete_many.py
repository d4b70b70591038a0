"""Choose many Leases, see what their deletion brings about, confirm, and follow it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, cast
from urllib.parse import urlencode

import msgspec
from asgiref.sync import sync_to_async
from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import clock
from dashboard.access import guards
from dashboard.access.roles import EDIT
from dashboard.board import running_board
from dashboard.forms.admin_form import AdminForm
from dashboard.forms.fields import TextLine
from dashboard.forms.what_happens import ALIVE
from dashboard.lists import responses
from dashboard.lists.url_parameters import BadFilter, one_of, quoted
from dashboard.parts.audit_line import intent_of
from dashboard.parts.cluster_write_access import WriteAccess, may_write
from dashboard.parts.formatting import age, counted, listed
from dashboard.parts.lease_controls import says
from dashboard.parts.lease_filter import LeaseFilter, find
from dashboard.parts.lease_row import row_view
from dashboard.parts.names import lease_url, told_apart
from dashboard.watched_cluster import NodeBook, WatchedCluster
from leases.actions import deletion_runs
from leases.actions.delete_many import ChosenLease, chosen, digest
from leases.actions.deletion_runs import DeletionCounts, ReportLine
from leases.domain.kind import NODE_LEASES, Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.watched_times import ConnectionState
from leases.history.export import csv_cell
from leases.models import Deletion
from leases.tracking.tracked_lease import Tracked
from leases.wire.microtime import format_microtime

EVERY = 10**9
ABANDONED, ORPHANED = "abandoned", "orphaned"
READY = ("", ABANDONED, ORPHANED)
LEAVE, DELETE = "leave", "delete"  # what to do with the held ones


class DeletionChoice(msgspec.Struct, frozen=True, kw_only=True):
    """`leases` are in name order; `with_held`: those that are held are to be deleted too."""

    words: str
    leases: Sequence[Tracked]
    with_held: bool
    missing: int = 0  # chosen by name and not there any more

    @property
    def held(self) -> int:
        return sum(one.phase in ALIVE for one in self.leases)

    @property
    def to_delete(self) -> list[Tracked]:
        if self.with_held:
            return list(self.leases)
        return [one for one in self.leases if one.phase not in ALIVE]

    def digest(self) -> str:
        return digest((one.lease, one.phase in ALIVE) for one in self.to_delete)

    def as_chosen(self) -> list[ChosenLease]:
        return [chosen(one.lease, held=one.phase in ALIVE) for one in self.to_delete]


def choose(cluster: WatchedCluster, query: QueryDict) -> DeletionChoice | None:
    """Read the choice; None if the URL names none. Raises BadFilter."""
    ready = one_of(query, "ready", READY)
    with_held = one_of(query, "held", (LEAVE, DELETE)) == DELETE
    if ready:
        words, leases = _ready(cluster, ready)
        return DeletionChoice(words=words, leases=leases, with_held=with_held)
    names = _again(cluster, str(query["again"])) if "again" in query else _names(query)
    if names:
        found = [cluster.store.get(name) for name in sorted(set(names))]
        there = [one for one in found if one is not None]
        words = "Not deleted the last time" if "again" in query else "Chosen by name"
        missing = len(found) - len(there)
        return DeletionChoice(words=words, leases=there, with_held=with_held, missing=missing)
    wanted = LeaseFilter.read(query).replace(page=1, limit=EVERY, sort="namespace")
    if "again" in query or wanted == LeaseFilter().replace(limit=EVERY, sort="namespace"):
        return None
    return DeletionChoice(
        words=says(wanted), leases=find(cluster.store, wanted).page, with_held=with_held
    )


def ready_selections(cluster: WatchedCluster) -> list[dict[str, object]]:
    """The ready selections with their numbers, for people who have not chosen yet. Before the
    first list these are not known.
    """
    known, made = cluster.store.known, list[dict[str, object]]()
    for name in READY[1:]:
        words, leases = _ready(cluster, name)
        number = len(leases) if known else None
        made.append({"query": urlencode({"ready": name}), "words": words, "number": number})
    expired = find(cluster.store, LeaseFilter(phases=(Phase.EXPIRED,), limit=1)).total
    query = LeaseFilter(phases=(Phase.EXPIRED,)).query()
    made.append({"query": query, "words": "Expired", "number": expired if known else None})
    return made


def summary(cluster: WatchedCluster, choice: DeletionChoice, now: datetime) -> list[str]:
    """What is chosen, in sentences: worst first."""
    leases = choice.to_delete
    phases = Counter(one.phase for one in leases)
    said = [f"{', '.join(f'{phases[phase]:,} {phase}' for phase in Phase if phases[phase])}."]
    if silent := [one.phase_since for one in leases if one.phase is Phase.EXPIRED]:
        said.append(
            f"The longest expired one is so for {age((now - min(silent)).total_seconds())}."
        )
    namespaces = Counter(one.key.namespace for one in leases).most_common()
    if len(namespaces) == 1:
        said.append(f"All in the namespace {namespaces[0][0]}.")
    else:
        most = [f"{name} ({number:,})" for name, number in namespaces]
        said.append(f"In {counted(len(namespaces), 'namespace')}: {listed(most)}.")
    orphans = _without_node(cluster, leases)
    if orphans:
        said.append(f"{counted(orphans, 'is', 'are')} named after nodes that do not exist.")
    return said


def _ready(cluster: WatchedCluster, name: str) -> tuple[str, list[Tracked]]:
    if name == ABANDONED:
        unheld = cluster.store.select(tuple(Kind), (Phase.VACANT, Phase.EXPIRED))
        return "Abandoned", [one for one in unheld if one.abandoned]
    keys = _nodes_of(cluster).missing(cluster.store)
    found = (cluster.store.get(key) for key in keys)
    return "Heartbeats of nodes that do not exist", [one for one in found if one is not None]


def _without_node(cluster: WatchedCluster, leases: Iterable[Tracked]) -> int:
    if not any(one.key.namespace == NODE_LEASES for one in leases):
        return 0
    missing = set(_nodes_of(cluster).missing(cluster.store))
    return sum(one.key in missing for one in leases)


def _nodes_of(cluster: WatchedCluster) -> NodeBook:
    return running_board().feeds[cluster.name].nodes


def _names(query: QueryDict) -> list[ObjectName]:
    names = []
    for text in query.getlist("lease"):
        namespace, slash, name = text.partition("/")
        if not (namespace and slash and name):
            raise BadFilter(f"lease cannot be {quoted(text)}: write namespace/name.")
        names.append(ObjectName(namespace, name))
    return names


def _again(cluster: WatchedCluster, number: str) -> list[ObjectName]:
    """The Leases of an earlier deletion that it did not delete and did not find gone."""
    row = None
    if number.isascii() and number.isdecimal() and len(number) < 10:
        row = Deletion.objects.filter(cluster=cluster.name, pk=int(number)).first()
    if row is None:
        raise BadFilter(f"again cannot be {quoted(number)}: name a deletion of this cluster.")
    return deletion_runs.names_to_try_again(row)


CHANGED = (
    "The choice changed since this page was drawn: other Leases match by now, or one is held by now"
    " that was not. Look at it again, then confirm."
)


class DeleteManyForm(AdminForm):
    """The typed number, and a digest of the Leases that the page showed."""

    wide = frozenset({"typed_number", "reason"})

    typed_number = forms.CharField(
        widget=TextLine(mono=True, inputmode="numeric"),
        error_messages={"required": "Type the number of Leases to confirm."},
    )
    seen = forms.CharField(required=False, widget=forms.HiddenInput, max_length=64)

    field_order = ["typed_number", "reason"]

    def __init__(self, *args: Any, number: int, digest: str, **kwargs: Any) -> None:
        """`number` and `digest` are those of the Leases that are chosen now."""
        super().__init__(*args, saving=True, **kwargs)
        self.number, self.digest = number, digest
        self.fields["typed_number"].label = f"Type {number} to confirm"

    def clean_typed_number(self) -> str:
        typed: str = self.cleaned_data["typed_number"]
        if typed.replace(",", "") != str(self.number):
            raise forms.ValidationError(f"This is not {self.number}.")
        return typed

    def clean(self) -> dict[str, Any]:
        if self.cleaned_data.get("seen") != self.digest:
            raise forms.ValidationError(CHANGED)
        return self.cleaned_data


SHOWN = 50
NOT_LIVE = (
    "The cluster is not live, so this list may be out of date. Nothing was started; try again once "
    "the connection is back."
)
REPORTED = "It may refuse some of these; the report will say which."


@require_http_methods(["GET", "HEAD", "POST"])
async def delete_many(request: HttpRequest, cluster: str) -> HttpResponseBase:
    """GET shows what the URL chooses; POST starts the deletion of exactly that."""
    refusal = await sync_to_async(guards.check_editor)(request)
    if refusal is not None:
        return refusal
    watched = guards.find_cluster(cluster)
    guards.check_writable(watched)
    namespace = request.GET.get("namespace", "")
    access = await may_write(watched, await request.auser(), namespace, "delete")
    if access.partly:
        access = msgspec.structs.replace(access, sentence=f"{access.sentence} {REPORTED}")
    return await sync_to_async(_answer)(request, cluster, access)


@guards.viewer_required
def _answer(request: guards.ClusterRequest, _cluster: str, access: WriteAccess) -> HttpResponseBase:
    request.delete_access = access  # type: ignore[attr-defined]
    if request.method == "POST":
        once, user = request.POST.get("once", ""), cast("User", request.user)
        first = deletion_runs.started_before(once, user=user, cluster=request.cluster.name)
        if first is not None:
            return redirect("deletion", request.cluster.name, first.pk)
    try:
        choice = choose(request.cluster, request.GET)
    except BadFilter as error:
        return _draw(request, None, error=str(error), status=400)
    if choice is None or not choice.leases:
        return _draw(request, choice)
    number, digest = len(choice.to_delete), choice.digest()
    if request.method != "POST":
        form = DeleteManyForm(initial={"seen": digest}, number=number, digest=digest)
        return _draw(request, choice, form=form)
    form = DeleteManyForm(request.POST, number=number, digest=digest)
    live = request.cluster.store.connection.state is ConnectionState.LIVE
    if not form.is_valid() or not live or not number:
        data = request.POST.copy()
        data["seen"] = digest
        form.data = data
        says, status = ("", 422) if live else (NOT_LIVE, 409)
        return _draw(request, choice, form=form, error=says, status=status)
    return _start(request, choice, form)


def _start(
    request: guards.ClusterRequest, choice: DeletionChoice, form: DeleteManyForm
) -> HttpResponseBase:
    deletions = running_board().deletions[request.cluster.name]
    intent = intent_of(
        request,
        request.cluster,
        ObjectName("", ""),
        action=deletion_runs.ACTION,
        reason=form.cleaned_data["reason"],
        once=form.cleaned_data["once"],
    )
    try:
        row = deletion_runs.start(
            intent, choice.as_chosen(), words=choice.words, process=deletions.process
        )
    except deletion_runs.Started as started:
        row = started.deletion
    deletions.wake()
    return redirect("deletion", request.cluster.name, row.pk)


def _draw(
    request: guards.ClusterRequest,
    choice: DeletionChoice | None,
    *,
    form: DeleteManyForm | None = None,
    error: str = "",
    status: int = 200,
) -> HttpResponse:
    now = clock.now()
    context: dict[str, Any] = {
        "choice": choice,
        "form": form,
        "error": error,
        "access": request.delete_access,  # type: ignore[attr-defined]
    }
    if choice is None:
        context["ready"] = ready_selections(request.cluster)
    else:
        as_of = request.cluster.as_of(now)
        context |= {
            "number": len(choice.to_delete),
            "summary": summary(request.cluster, choice, as_of) if choice.to_delete else [],
            "rows": [
                row_view(request.cluster.name, one, as_of) for one in choice.to_delete[:SHOWN]
            ],
            "more": max(0, len(choice.to_delete) - SHOWN),
            "held_urls": {word: _with(request.GET, held=word) for word in (LEAVE, DELETE)},
        }
    return render(request, "delete/many.html", context, status=status)


def _with(query: QueryDict, **changes: str) -> str:
    """The query string with other values."""
    pairs = [(name, value) for name, values in query.lists() for value in values]
    kept = [pair for pair in pairs if pair[0] not in changes]
    return urlencode([*kept, *changes.items()])


LISTED = 50  # deletions on the page of all
REPORT_LINES = 200  # Leases in a report; the CSV has all
COLUMNS = ("namespace", "name", "uid", "outcome", "detail", "at")


@require_safe
@guards.viewer_required
def deletions(request: guards.ClusterRequest, cluster: str) -> HttpResponse:
    """The newest deletions of the cluster."""
    guards.check_edit(request.user)
    rows = Deletion.objects.filter(cluster=cluster).defer("chosen").order_by("-pk")[:LISTED]
    found = [{"row": row, "counts": deletion_runs.counts_of(row)} for row in rows]
    return render(request, "deletions/index.html", {"deletions": found})


@require_safe
@guards.viewer_required
def deletion(request: guards.ClusterRequest, cluster: str, number: int) -> HttpResponseBase:
    """Its progress, then its report; `?format=csv` is the whole report."""
    guards.check_edit(request.user)
    row = _find(cluster, number)
    try:
        answer_as = responses.read_format(request, ("", "html", "csv"))
    except BadFilter as error:
        return HttpResponse(str(error), status=400, content_type="text/plain; charset=utf-8")
    if answer_as == "csv":
        filename = f"{cluster}-deletion-{row.pk}.csv"
        return responses.stream(
            request,
            _csv(row),
            content_type="text/csv; charset=utf-8",
            filename=filename,
            permission=EDIT,
        )
    partial = request.htmx and not request.htmx.history_restore_request
    template = "deletions/_progress.html" if partial else "deletions/one.html"
    response = render(request, template, _presented(row, clock.now()))
    patch_vary_headers(response, ["HX-Request"])
    return response


@require_POST
@guards.viewer_required
def stop_deletion(request: guards.ClusterRequest, cluster: str, number: int) -> HttpResponseBase:
    """Stop it. What is deleted stays deleted."""
    guards.check_edit(request.user)
    row = _find(cluster, number)
    if not deletion_runs.ask_to_stop(row.pk):
        messages.info(request, "It had ended before. Nothing was stopped.")
    running_board().deletions[cluster].wake()
    return redirect("deletion", cluster, row.pk)


def _find(cluster: str, number: int) -> Deletion:
    row = Deletion.objects.filter(cluster=cluster, pk=number).first()
    if row is None:
        raise Http404(f"There is no deletion {number} in {cluster}.")
    return row


def _presented(row: Deletion, now: datetime) -> dict[str, Any]:
    counts = deletion_runs.counts_of(row)
    lines = deletion_runs.not_deleted(row, REPORT_LINES)
    shown = told_apart(line.name for line in lines)
    ended = row.ended_at or now
    took = (ended - row.made_at).total_seconds()
    active = row.state in Deletion.ACTIVE
    return {
        "row": row,
        "counts": counts,
        "active": active,
        "stopping": active and row.stop_asked,
        "silent": active and now - row.beat_at > deletion_runs.SILENT,
        "share": 100 * counts.tried // (counts.total or 1),
        "took": age(took),
        "left": _left(counts, took) if active else "",
        "lines": [
            {
                "line": line,
                "url": lease_url(row.cluster, ObjectName(line.namespace, line.name)),
                "shown": shown[line.name],
            }
            for line in lines
        ],
        "more": max(0, counts.tried - counts.deleted - len(lines)),
        "try_again": counts.refused + counts.unknown + counts.not_deleted + counts.not_tried,
    }


def _left(counts: DeletionCounts, took: float) -> str:
    """`120 per second, about 4.2 s left`."""
    if not counts.tried or took <= 0:
        return ""
    rate = counts.tried / took
    return f"{rate:,.0f} per second, about {age(counts.not_tried / rate)} left"


def _csv(row: Deletion) -> Iterator[str]:
    yield ",".join(COLUMNS) + "\r\n"
    for line in deletion_runs.every(row):
        yield ",".join(map(csv_cell, _cells(line))) + "\r\n"


def _cells(line: ReportLine) -> tuple[str | None, ...]:
    at = format_microtime(line.at) if line.at else None
    return (line.namespace, line.name, line.uid, line.fate, line.detail, at)
