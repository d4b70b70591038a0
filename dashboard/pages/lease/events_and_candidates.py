"""What the cluster knows beside the Lease: the writers of its fields, Events, candidates."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import check_view, find_cluster
from dashboard.parts.cluster_questions import ClusterAnswers, NoAnswer, ask
from dashboard.parts.formatting import when
from dashboard.parts.holder_place import ClusterTime, PlaceView, cluster_time, place_view
from dashboard.parts.names import holder_view
from leases.domain.election import Candidate, CandidateState, ElectionOutcome, elect, standing
from leases.domain.lease import AwareDatetime, Lease, ObjectName
from leases.kube.cluster_source import ClusterSource
from leases.kube.kube_objects import KubeEvent


class AskedView(msgspec.Struct, frozen=True, kw_only=True):
    """The answers, or their refusals. Events are with their times."""

    at: str
    held_by: str  # whom we asked about
    managers: Sequence[dict[str, Any]] | NoAnswer
    events: Sequence[tuple[KubeEvent, ClusterTime | None]] | NoAnswer
    candidates: Sequence[dict[str, Any]] | NoAnswer
    coordinated: bool
    election: ElectionOutcome | None
    place: PlaceView | None


_SAYS = {
    CandidateState.READY: ("answers", "held"),
    CandidateState.ASKED: ("asked, no answer yet", "late"),
    CandidateState.SILENT: ("asked, did not answer", "expired"),
    CandidateState.OUTDATED: ("out: not renewed for 30 m", "expired"),
    CandidateState.INVALID: ("out: versions unreadable", "expired"),
}


def asked_view(
    asked: ClusterAnswers, lease: Lease | None, source: ClusterSource, now: datetime
) -> AskedView:
    """Present the answers; `lease` is None if it was deleted."""
    managed, events, candidates = asked.managed, asked.events, asked.candidates or ()
    coordinated = lease is not None and bool(lease.spec.strategy)
    if isinstance(candidates, NoAnswer) and not coordinated:
        candidates = ()
    election = None
    if candidates and not isinstance(candidates, NoAnswer):
        election = elect(candidates, now)
    return AskedView(
        at=when(now, now),
        held_by=asked.held_by,
        managers=managed if isinstance(managed, NoAnswer) else list(_managers(managed, now)),
        events=events
        if isinstance(events, NoAnswer)
        else [(e, _moment(e.at, now)) for e in events],
        candidates=candidates
        if isinstance(candidates, NoAnswer)
        else [_candidate(one, lease, election, now) for one in candidates],
        coordinated=coordinated,
        election=election,
        place=None if asked.place is None else place_view(asked.place, source, now),
    )


def _moment(moment: datetime | None, now: datetime) -> ClusterTime | None:
    return None if moment is None else cluster_time(moment, now)


def _managers(entries: Sequence[dict[str, Any]], now: datetime) -> Iterator[dict[str, Any]]:
    for entry in reversed(entries):
        subresource = entry.get("subresource")
        operation = str(entry.get("operation", ""))
        yield {
            "manager": str(entry.get("manager", "")),
            "operation": f"{operation} of {subresource}" if subresource else operation,
            "fields": ", ".join(sorted(_leaves(entry.get("fieldsV1")))),
            "moment": _moment(_time(entry.get("time")), now),
        }


def _leaves(fields: object, above: str = "") -> Iterator[str]:
    """The field names in a FieldsV1 trie, as structured-merge-diff writes it (`f:` is a field)."""
    if not isinstance(fields, dict):
        return
    below = {name: part for name, part in fields.items() if name.startswith("f:")}
    if above and not below:
        yield above
    for name, part in below.items():
        inner = name.removeprefix("f:")
        whole = inner if above in ("", "spec", "metadata") else f"{above}.{inner}"
        yield from _leaves(part, whole)


def _time(text: object) -> datetime | None:
    try:
        return msgspec.convert(text, AwareDatetime | None)
    except msgspec.ValidationError:
        return None


def _candidate(
    candidate: Candidate, lease: Lease | None, election: ElectionOutcome | None, now: datetime
) -> dict[str, Any]:
    says, phase = _SAYS[standing(candidate, now)]
    spec = candidate.spec
    return {
        "holder": holder_view(candidate.name),
        "binary": spec.binary_version,
        "emulation": spec.emulation_version,
        "renewed": _moment(spec.renew_time, now),
        "pinged": _moment(spec.ping_time, now),
        "holds": lease is not None and lease.holder == candidate.name,
        "preferred": lease is not None and lease.spec.preferred_holder == candidate.name,
        "wins": election is not None and election.winner == candidate.name,
        "says": says,
        "phase": phase,
    }


@require_safe
async def lease_asked(
    request: HttpRequest, cluster: str, namespace: str, name: str
) -> HttpResponseBase:
    """The answers as a part of the Lease's page, or as a page of their own."""
    refusal = await sync_to_async(check_view)(request)
    if refusal is not None:
        return refusal
    watched = request.cluster = find_cluster(cluster)  # type: ignore[attr-defined]
    key = ObjectName(namespace, name)
    asked = await ask(watched, key)
    tracked = watched.store.get(key)
    lease = tracked.lease if tracked else None
    context = {
        "namespace": namespace,
        "name": name,
        "asked": asked_view(asked, lease, watched.source, clock.now()),
    }
    part = request.htmx and not request.htmx.history_restore_request  # type: ignore[attr-defined]
    template = "leases/_asked.html" if part else "leases/asked.html"
    response = await sync_to_async(render)(request, template, context)
    patch_vary_headers(response, ["HX-Request"])
    return response
