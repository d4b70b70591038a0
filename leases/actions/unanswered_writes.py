"""Resolve rows of the audit trail that a crash, or a missing answer, left open.

A write that requires a resourceVersion succeeds only if it is that event.

Each write requires the resourceVersion that was read before it. So the first event of the Lease
after that version is either this write, or proves that it failed. The API server keeps events for
a while only; after that, the Lease as it is now must do.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from leases.actions import audit
from leases.actions.audit import leaves, same
from leases.domain.lease import ObjectName, number_of
from leases.history.database import from_stored_json, to_stored
from leases.kube.lease_client import API, FIELD_MANAGER, LeaseClient, segment
from leases.models import Edit
from leases.wire.json_decoding import Undecodable, read_document
from leases.wire.status import Gone, NotFound, Status, Unreachable, error_of

SECONDS = 1  # the shortest watch: earlier events come at once
WRITTEN = ("ADDED", "MODIFIED", "DELETED")


class FirstEvent(msgspec.Struct, frozen=True):
    """ADDED, MODIFIED or DELETED, and the whole object with its managedFields."""

    type: str
    document: dict[str, Any]


async def first_event(client: LeaseClient, key: ObjectName, since: str) -> FirstEvent | None:
    """Return the event, or None if there was none. Raises ApiError; Gone: `since` is too old."""
    query = (
        ("watch", "true"),
        ("fieldSelector", f"metadata.name={key.name}"),
        ("resourceVersion", since),
        ("timeoutSeconds", str(SECONDS)),
    )
    path = f"{API}/namespaces/{segment(key.namespace)}/leases"
    for line in (await client.send("GET", path, query=query)).splitlines():
        try:
            event = read_document(line)
            found = event.get("object")
            if event.get("type") == "ERROR":
                raise error_of(msgspec.convert(found, Status))
        except (Undecodable, msgspec.ValidationError) as error:
            raise Unreachable(f"The cluster sent something that is no event: {error}.") from error
        if event.get("type") in WRITTEN and isinstance(found, dict):
            return FirstEvent(event["type"], found)
    return None


# An API server ends a request after 60 s (--request-timeout), so an older one cannot arrive.
UNDER_WAY = timedelta(seconds=60)


class Resolution(msgspec.Struct, frozen=True):
    """`outcome` is audit.DONE, NOT_DONE or UNKNOWN; `sentence` says why."""

    outcome: str
    sentence: str
    resource_version: str = ""


NOT_SENT = Resolution(
    audit.NOT_DONE, "Leaseboard stopped before it sent the request. The cluster was not asked."
)
WENT_BACK = Resolution(
    audit.UNKNOWN,
    "The cluster is at an older resourceVersion than the request: it was restored or replaced.",
)
_ANOTHER_FIRST = "Another write came first, so the cluster could not accept this request."


async def resolve(row: Edit, client: LeaseClient, *, now: datetime) -> Resolution | None:
    """Close an open row by what the cluster shows; None if it must be looked at again later.

    Raises ApiError if the cluster does not answer.
    """
    verdict = await _judge(row, client, now=now)
    if verdict is not None:
        await Edit.objects.filter(pk=row.pk, outcome=Edit.INTENDED).aupdate(
            outcome=verdict.outcome,
            detail=to_stored(f"{verdict.sentence} {row.detail}".strip()),
            resource_version=verdict.resource_version,
            closed_at=now,
            resolved_at=now,
        )
    return verdict


async def unanswered(clusters: Iterable[str]) -> list[Edit]:
    """Return the open rows of these clusters that no request of this process is about to close."""
    rows, here = Edit.objects.filter(outcome=Edit.INTENDED).order_by("at"), frozenset(clusters)
    return [row async for row in rows if row.cluster in here and row.pk not in audit.running]


async def _judge(row: Edit, client: LeaseClient, *, now: datetime) -> Resolution | None:
    request = row.request
    may_arrive = now - _last_moment(row) < UNDER_WAY
    if not request:
        return None if may_arrive else NOT_SENT
    key, since = ObjectName(row.namespace, row.name), request["resource_version"]
    event = None
    try:
        if since:
            event = await first_event(client, key, since)
            if event is not None:
                return judge_event(row, event)
            if number_of(await client.newest_version()) < number_of(since):
                return WENT_BACK
    except Gone:
        since = ""
    try:
        current = await client.raw_get(key)
    except NotFound:
        current = None
    if since and row.request["verb"] != "create" and current is None:
        return None  # deleted a moment ago: the next look sees the event
    return judge_current(row, current, complete=bool(since), may_arrive=may_arrive)


def judge_event(row: Edit, event: FirstEvent) -> Resolution:
    """Judge by the first event after the version that the request required."""
    meta = event.document.get("metadata", {})
    version = str(meta.get("resourceVersion", ""))
    if row.request["uid"] not in ("", meta.get("uid")):
        return Resolution(
            audit.UNKNOWN, "This cluster is not the one that the request was sent to."
        )
    if row.request["verb"] == "delete":
        if event.type == "DELETED":
            return Resolution(
                audit.DONE, "The cluster deleted the Lease in the version that the request named."
            )
        if meta.get("deletionTimestamp"):
            return Resolution(audit.DONE, "The cluster deletes the Lease; finalizers delay it.")
        return Resolution(audit.NOT_DONE, _ANOTHER_FIRST)
    if event.type != "DELETED" and _is_ours(row, event.document):
        sentence = f"The cluster has this write, as resourceVersion {version}."
        return Resolution(audit.DONE, sentence, version)
    return Resolution(audit.NOT_DONE, _ANOTHER_FIRST)


def judge_current(
    row: Edit, current: Mapping[str, Any] | None, *, complete: bool, may_arrive: bool
) -> Resolution | None:
    """Judge by the Lease as it is now, or None if it does not exist.

    `complete`: the cluster still has all events since the request, and none is of this Lease.
    """
    verb, meta = row.request["verb"], (current or {}).get("metadata", {})
    version = str(meta.get("resourceVersion", ""))
    unchanged = version and version == row.request["resource_version"]
    if complete or unchanged or (verb == "create" and current is None and complete):
        if may_arrive:
            return None
        return Resolution(audit.NOT_DONE, "The cluster has not changed the Lease since.")
    same_object = current is not None and meta.get("uid") == row.request["uid"]
    if verb == "delete" and same_object:
        return (
            None if may_arrive else Resolution(audit.NOT_DONE, "The cluster still has the Lease.")
        )
    if verb != "delete" and current is not None and (same_object or verb == "create"):
        if _is_ours(row, current, all_fields=True):
            return Resolution(audit.DONE, "The Lease has what the request wrote.", version)
        if verb != "create" and _has_old_term(row, current):
            return Resolution(
                audit.NOT_DONE, "The Lease still has the term from before the request."
            )
    return Resolution(
        audit.UNKNOWN, f"{_state_of(current)} Whether by this request cannot be told."
    )


def _is_ours(row: Edit, document: Mapping[str, Any], *, all_fields: bool = False) -> bool:
    """Whether an object has the values of the request, written by our field manager.

    The server may drop a field (strategy behind its gate), so for the first event one is enough.
    """
    found = leaves(document)
    changes = from_stored_json(row.changes)
    matches = [same(one["field"], found.get(one["field"]), one["to"]) for one in changes]
    managed = document.get("metadata", {}).get("managedFields") or []
    by_us = not managed or any(entry.get("manager") == FIELD_MANAGER for entry in managed)
    return by_us and bool(matches) and (all(matches) if all_fields else any(matches))


def _has_old_term(row: Edit, document: Mapping[str, Any]) -> bool:
    """Whether the request set acquireTime and the Lease still has the previous one.

    An elector that takes the Lease back writes a new acquireTime.
    """
    found = leaves(document).get("spec.acquireTime")
    return any(
        one["field"] == "spec.acquireTime"
        and one["from"]
        and same(one["field"], found, one["from"])
        for one in row.changes
    )


def _state_of(current: Mapping[str, Any] | None) -> str:
    if current is None:
        return "The Lease is gone."
    holder = (current.get("spec") or {}).get("holderIdentity") or "nobody"
    return f"The Lease was written since; {holder} holds it now."


def _last_moment(row: Edit) -> datetime:
    sent: str | None = row.request.get("sent_at")
    return datetime.fromisoformat(sent) if sent else row.at
