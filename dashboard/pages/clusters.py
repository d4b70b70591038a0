"""The clusters of this installation; admins add more, label, pause and remove them here."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec
from django import forms
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.db.models import F
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, right_required
from dashboard.access.kept_secrets import KUBECONFIGS, seal_text
from dashboard.access.roles import CLUSTERS
from dashboard.access.security_log import SecurityEvent, record_by
from dashboard.board import running_board
from dashboard.forms.admin_form import PlainForm
from dashboard.forms.cluster_form import MAX_KUBECONFIG, PASTE_AGAIN, TOO_LARGE, ClusterForm
from dashboard.forms.make_and_revoke import row_of
from dashboard.lists.declaration import FoundRows, List
from dashboard.lists.url_parameters import LIMIT, PAGE, ListFilter, Parameter
from dashboard.parts.fleet_row import SHAPES, WATCH_WORDS
from dashboard.parts.formatting import when
from dashboard.watched_cluster import WatchedCluster
from leases.domain.watched_times import ConnectionState
from leases.kube.cluster_source import SourceKind
from leases.kube.given_kubeconfig import server_of
from leases.models import AddedCluster
from leases.wire.microtime import format_microtime, microtime_or_none

clusters_required = right_required(CLUSTERS, "manage clusters")

MAX_ADDED = 1000


class ManagedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, where it comes from, and how it is watched. `row` is there if an admin added it,
    `watched` if this process knows it."""

    name: str
    source: str
    labels: Mapping[str, str]
    row: AddedCluster | None = None
    watched: WatchedCluster | None = None
    problem: str = ""

    @property
    def from_secret(self) -> bool:
        return self.source.startswith("Secret ")


def managed_clusters() -> list[ManagedCluster]:
    """All of them, by name."""
    board = running_board()
    rows = list(AddedCluster.objects.defer("sealed"))
    given = {name: one for name, one in board.clusters.items() if not _is_added(one)}
    found = [
        ManagedCluster(
            name=name, source=_source(one), watched=one, labels=dict(board.feeds[name].labels)
        )
        for name, one in given.items()
        if name in board.feeds
    ]
    found += [
        ManagedCluster(
            name=row.name,
            source=row.server,
            labels=row.labels,
            row=row,
            watched=None if row.name in given else board.clusters.get(row.name),
            problem=board.added.wrong.get(row.name, ""),
        )
        for row in rows
    ]
    return sorted(found, key=lambda one: (one.name, one.row is not None))


def _is_added(cluster: WatchedCluster) -> bool:
    return cluster.source.kind is SourceKind.ADDED


def _source(cluster: WatchedCluster) -> str:
    if cluster.source.kind is SourceKind.SECRET:
        return f"Secret {cluster.source.value}"
    return str(cluster.source)


class ClustersFilter(ListFilter, frozen=True, kw_only=True):
    PARAMETERS = {"text": Parameter("q"), "page": PAGE, "limit": LIMIT}
    text: str = ""


class Clusters(List[ClustersFilter, ManagedCluster]):
    """All clusters, by name."""

    name = "clusters"
    reads = ClustersFilter
    templates = ("clusters/index.html", "clusters/_rows.html")
    permission = CLUSTERS

    def find(self) -> FoundRows[ManagedCluster]:
        wanted = self.wanted.text.casefold()
        return self.cut([one for one in managed_clusters() if wanted in one.name])

    def item(self, row: ManagedCluster) -> dict[str, Any]:
        watch = row.watched.connection if row.watched else None
        added = row.row
        return {
            "cluster": row.name,
            "source": row.source,
            "added": added is not None,
            "labels": dict(row.labels),
            "connection": watch.state.value if watch else None,
            "since": format_microtime(watch.since) if watch else None,
            "detail": row.problem or (watch.detail if watch else "") or None,
            "added_by": added.added_by if added else None,
            "added_at": microtime_or_none(added.added_at) if added else None,
            "paused_by": (added.paused_by or None) if added else None,
            "paused_at": microtime_or_none(added.paused_at) if added else None,
            "removed_at": microtime_or_none(added.removed_at) if added else None,
        }

    def page(self, found: FoundRows[ManagedCluster]) -> dict[str, Any]:
        pager = self.links.pager(found.number, found.total)
        return self._frame() | {
            "lines": [self._line(row) for row in found.rows],
            "total": found.total,
            "pager": pager if pager.previous_url or pager.next_url else None,
        }

    def refused(self) -> dict[str, Any]:
        return self._frame() | {"board": self.reads.typed(self.request.GET)}

    def _frame(self) -> dict[str, Any]:
        return {
            "board": self.wanted.texts(),
            "filtered": bool(self.wanted.pairs()),
            "clear_url": self.links.path,
            "json_url": self.links.url_as("json"),
        }

    def _line(self, row: ManagedCluster) -> dict[str, Any]:
        css, word, detail = "late", "is watched in a moment", ""
        if row.row is not None and row.row.removed_at is not None:
            css, word = "untimed", "removed; its history is being deleted"
        elif row.problem:
            css, word, detail = "expired", "not watched", row.problem
        elif row.watched is not None:
            watch = row.watched.connection
            css = SHAPES[watch.state]
            word = f"{WATCH_WORDS[watch.state]} {when(watch.since, self.now)}"
            detail = watch.detail
            if row.row is not None and row.watched.paused:
                word, detail = f"{word} by {row.row.paused_by}", ""
            elif row.row is not None and watch.state is ConnectionState.REFUSED:
                detail = f"{detail} Change gives it another kubeconfig."
        labels = ", ".join(f"{key}={value}" for key, value in row.labels.items())
        return {"one": row, "css": css, "word": word, "detail": detail, "labels": labels}


@require_safe
@never_cache
@clusters_required
def clusters(request: HttpRequest) -> HttpResponseBase:
    """All clusters, as a page or as JSON."""
    return Clusters(cast("ClusterRequest", request)).answer()


FORM_METHODS = ["GET", "HEAD", "POST"]
MAX_REQUEST = 4 * MAX_KUBECONFIG  # bytes; a larger file would lie on a disk, and is not read
MAX_SERVER = 300  # characters
KEEP, DELETE = "keep", "delete"


def _form(request: HttpRequest, row: AddedCluster | None = None) -> ClusterForm:
    given = (request.POST, request.FILES) if request.method == "POST" else (None, None)
    form = ClusterForm(*given, row=row)
    if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_REQUEST:
        form.add_error("kubeconfig", TOO_LARGE)
    return form


def _draw(request: HttpRequest, form: ClusterForm, error: str = "") -> HttpResponseBase:
    refused = form.errors and not form.asks_context
    context = {
        "form": form,
        "row": form.row,
        "error": error,
        "again": PASTE_AGAIN if refused and form.was_given else "",
    }
    status = 422 if error or form.errors else 200
    return render(request, "clusters/cluster.html", context, status=status)


def _store(form: ClusterForm, row: AddedCluster) -> None:
    """Put what the form says into the row, without saving it."""
    row.labels = form.cleaned_data["labels"]
    if form.config is not None:
        row.sealed = seal_text(msgspec.json.encode(form.config).decode(), KUBECONFIGS)
        row.server = server_of(form.config)[:MAX_SERVER]


def _done(
    request: HttpRequest, event: SecurityEvent, about: str, told: str, warnings: list[str]
) -> HttpResponseBase:
    record_by(request, event, about)
    running_board().added.wake()
    messages.success(request, told)
    for one in warnings:
        messages.warning(request, one)
    return redirect("clusters")


@never_cache
@require_http_methods(FORM_METHODS)
@clusters_required
def new_cluster(request: HttpRequest) -> HttpResponseBase:
    """Check a cluster, and add it."""
    form = _form(request)
    if request.method == "POST" and AddedCluster.objects.count() >= MAX_ADDED:
        return _draw(request, form, f"There are {MAX_ADDED:,} clusters, and there cannot be more.")
    warnings = form.check_cluster() if form.is_valid() else []
    if request.method != "POST" or form.errors:
        return _draw(request, form)
    who, name = request.user.get_username(), form.cluster
    row = AddedCluster(name=name, added_by=who, added_at=clock.now())
    _store(form, row)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        return _draw(request, form, f"Another admin added a cluster {name} just now.")
    about = f"cluster {name} at {row.server}"
    told = f"The cluster {name} is added."
    return _done(request, SecurityEvent.CLUSTER_ADDED, about, told, warnings)


def _found(number: int) -> AddedCluster:
    return row_of(AddedCluster.objects.filter(removed_at=None), number)


@never_cache
@require_http_methods(FORM_METHODS)
@clusters_required
def cluster(request: HttpRequest, number: int) -> HttpResponseBase:
    """Change its labels, and give it another kubeconfig."""
    row = _found(number)
    form = _form(request, row)
    warnings = form.check_cluster() if form.is_valid() else []
    if request.method != "POST" or form.errors:
        return _draw(request, form)
    _store(form, row)
    changes: dict[str, Any] = {"labels": row.labels}
    if form.config is not None:
        changes |= {"sealed": row.sealed, "server": row.server, "revision": F("revision") + 1}
    AddedCluster.objects.filter(pk=number, removed_at=None).update(**changes)
    what = "labels" if form.config is None else f"labels and kubeconfig, at {row.server}"
    about, told = f"cluster {row.name}: {what}", f"The cluster {row.name} is changed."
    return _done(request, SecurityEvent.CLUSTER_CHANGED, about, told, warnings)


@require_POST
@clusters_required
def pause_cluster(request: HttpRequest, number: int) -> HttpResponseBase:
    """Watch it no longer, until it is resumed."""
    row, who = _found(number), request.user.get_username()
    open_rows = AddedCluster.objects.filter(pk=number, paused_at=None)
    if not open_rows.update(paused_at=clock.now(), paused_by=who):
        return redirect("clusters")
    told = f"The cluster {row.name} is paused. Nothing is known of the time until it is resumed."
    return _done(request, SecurityEvent.CLUSTER_PAUSED, f"cluster {row.name}", told, [])


@require_POST
@clusters_required
def resume_cluster(request: HttpRequest, number: int) -> HttpResponseBase:
    row = _found(number)
    paused = AddedCluster.objects.filter(pk=number, paused_at__isnull=False)
    if not paused.update(paused_at=None, paused_by=""):
        return redirect("clusters")
    told = f"The cluster {row.name} is watched again."
    return _done(request, SecurityEvent.CLUSTER_RESUMED, f"cluster {row.name}", told, [])


KEEPS = "Keep it: export_history reads it, and a cluster of this name that is added shows it"
DELETES = "Delete it: changes, incidents, reliability, and what is known of its Leases"


class RemoveForm(PlainForm):
    history = forms.ChoiceField(
        label="Its history",
        choices=[(KEEP, KEEPS), (DELETE, DELETES)],
        widget=forms.RadioSelect,
        error_messages={
            "required": "Choose what happens to its history.",
            "invalid_choice": "Choose whether its history is kept or deleted.",
        },
    )


@never_cache
@require_http_methods(FORM_METHODS)
@clusters_required
def remove_cluster(request: HttpRequest, number: int) -> HttpResponseBase:
    """Ask what is to happen to its history, then remove it."""
    row = _found(number)
    form = RemoveForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        status = 422 if form.errors else 200
        return render(request, "clusters/remove.html", {"row": row, "form": form}, status=status)
    who, name = request.user.get_username(), row.name
    if form.cleaned_data["history"] == DELETE:
        rows = AddedCluster.objects.filter(pk=number, removed_at=None)
        rows.update(removed_at=clock.now(), removed_by=who, sealed="")
        about, told = f"cluster {name} and its history", "Its history is deleted step by step."
    else:
        row.delete()
        about, told = f"cluster {name}; its history stays", "Its history stays."
    told = f"The cluster {name} is removed. {told}"
    return _done(request, SecurityEvent.CLUSTER_REMOVED, about, told, [])
