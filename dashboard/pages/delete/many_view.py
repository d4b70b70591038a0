"""Choose many Leases, see what their deletion brings about, confirm by their number."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec
from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard import clock
from dashboard.access.guards import (
    ClusterRequest,
    check_editor,
    check_writable,
    find_cluster,
    viewer_required,
)
from dashboard.board import running_board
from dashboard.forms.delete_many_form import DeleteManyForm
from dashboard.pages.delete.choosing import (
    DELETE,
    LEAVE,
    DeletionChoice,
    choose,
    ready_selections,
    summary,
)
from dashboard.parts.audit_intent import intent_of
from dashboard.parts.kept.write_access import WriteAccess, may_write
from dashboard.parts.lease.row import row_view
from dashboard.parts.query.url_parameters import BadFilter
from leases.actions.delete_many import records
from leases.domain.connection import ConnectionState
from leases.domain.lease import ObjectName

SHOWN = 50
NOT_LIVE = (
    "The cluster is not live, so this list may be out of date. Nothing was started; try again once "
    "the connection is back."
)
REPORTED = "It may refuse some of these; the report will say which."


@require_http_methods(["GET", "HEAD", "POST"])
async def delete_many(request: HttpRequest, cluster: str) -> HttpResponseBase:
    """GET shows what the URL chooses; POST starts the deletion of exactly that."""
    refusal = await sync_to_async(check_editor)(request)
    if refusal is not None:
        return refusal
    watched = find_cluster(cluster)
    check_writable(watched)
    namespace = request.GET.get("namespace", "")
    access = await may_write(watched, await request.auser(), namespace, "delete")
    if access.partly:
        access = msgspec.structs.replace(access, sentence=f"{access.sentence} {REPORTED}")
    return await sync_to_async(_answer)(request, cluster, access)


@viewer_required
def _answer(request: ClusterRequest, _cluster: str, access: WriteAccess) -> HttpResponseBase:
    request.delete_access = access  # type: ignore[attr-defined]
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
    request: ClusterRequest, choice: DeletionChoice, form: DeleteManyForm
) -> HttpResponseBase:
    deletions = running_board().deletions[request.cluster.name]
    intent = intent_of(
        request,
        request.cluster,
        ObjectName("", ""),
        action=records.ACTION,
        reason=form.cleaned_data["reason"],
        once=form.cleaned_data["once"],
    )
    try:
        row = records.start(
            intent, choice.as_chosen(), words=choice.words, process=deletions.process
        )
    except records.Started as started:
        row = started.deletion
    deletions.wake()
    return redirect("deletion", request.cluster.name, row.pk)


def _draw(
    request: ClusterRequest,
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
