"""The page after a write: what truly happened, as the watch reported it."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.access.roles import READ_TRAIL
from dashboard.forms.what_happens import short
from dashboard.parts.change_sentence import ChangeLine, change_line, changes_of
from dashboard.parts.formatting import age, fine_clock, shortened
from dashboard.parts.lease_row import row_view
from dashboard.parts.names import lease_url
from dashboard.watched_cluster import WatchedCluster
from leases.domain.change import Change, ChangeType
from leases.domain.edit import MISSING, Delete, FieldEdit, HandOver, Release, YamlEdit, at_path
from leases.domain.lease import Lease, ObjectName, number_of
from leases.history.audit_trail import readable
from leases.models import Edit
from leases.tracking.tracked_lease import Tracked
from leases.wire.microtime import format_microtime


def since_delete(row: Edit, changes: Sequence[Change]) -> list[Change]:
    """The deletion and the changes after it, oldest first. `changes` are newest first.

    The deletion has a later resourceVersion than the one that the delete required.
    """
    required = number_of(row.request.get("resource_version"))
    found = [one for one in reversed(changes) if number_of(one.resource_version) >= required]
    first = next((n for n, one in enumerate(found) if one.change is ChangeType.DELETED), len(found))
    return found[first:]


def sentences_of_delete(
    since: Sequence[Change], now: datetime, *, at: datetime, is_gone: bool
) -> Iterator[str]:
    """Who made it anew, and how soon. `at` is when the cluster answered."""
    if not since and not is_gone:
        yield "The API server has deleted it. The watch reports it within moments."
        return
    deleted_at = since[0].at if since else at
    anew = next((one for one in since if one.change is ChangeType.CREATED), None)
    if anew is None:
        yield f"Nobody has made it anew since{_for(now - deleted_at)}."
        return
    later = age((anew.at - deleted_at).total_seconds())
    if anew.holder is None:
        yield f"Somebody made it anew {later} later, without a holder."
    else:
        yield f"{short(anew.holder)} made it anew {later} later."


def _for(waited: timedelta) -> str:
    """Nothing for what is no time yet: `for 0.0 s` says that it is not so."""
    return f", for {age(waited.total_seconds())}" if waited >= timedelta(seconds=1) else ""


SETTLED = timedelta(seconds=30)  # after this long the page no longer looks by itself
MAX_SHOWN = 80
DONE = "done"
WORDS = {
    Release.action: "Released",
    HandOver.action: "Handed over",
    FieldEdit.action: "Written",
    YamlEdit.action: "Written",
}


class ReportedOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """`lines`: the changes since the write, oldest first. `settled`: the page stops looking."""

    title: str
    phase: str
    sentences: tuple[str, ...]
    lines: tuple[ChangeLine, ...] = ()
    settled: bool = True


def outcome_of(
    row: Edit, tracked: Tracked | None, changes: Sequence[Change], now: datetime
) -> ReportedOutcome:
    """`changes`: the newest ones of the Lease, newest first; `tracked`: None if it is deleted."""
    at = row.closed_at or row.at
    settled = now - at > SETTLED
    if row.outcome != DONE:
        title = "Sent; there is no answer yet" if row.closed_at is None else "Nothing is known done"
        return ReportedOutcome(
            title=title, phase="expired", sentences=(row.detail,), settled=settled
        )
    if row.action == Delete.action:
        found = since_delete(row, changes)
        return ReportedOutcome(
            title=f"Deleted at {fine_clock(at)}",
            phase="held" if found or tracked is None else "late",
            sentences=tuple(sentences_of_delete(found, now, at=at, is_gone=tracked is None)),
            lines=tuple(change_line(change, now) for change in found),
            settled=settled,
        )
    since = _Since(row, tracked, changes)
    word = WORDS.get(row.action, "Written")
    return ReportedOutcome(
        title=f"{word} at {fine_clock(at)}",
        phase="held" if since.seen else "late",
        sentences=tuple(_sentences(row, since, now)),
        lines=tuple(change_line(change, now) for change in since.all),
        settled=settled,
    )


class _Since:
    """What the watch reported since the write."""

    def __init__(self, row: Edit, tracked: Tracked | None, changes: Sequence[Change]) -> None:
        version = number_of(row.resource_version)
        oldest_first = list(reversed(changes))
        self.ours = next(
            (one for one in oldest_first if version and number_of(one.resource_version) == version),
            None,
        )
        self.at = self.ours.at if self.ours else row.closed_at or row.at
        self.later = [one for one in oldest_first if self._is_later(one, version, row)]
        self.all = [*([self.ours] if self.ours else []), *self.later]
        self.tracked = tracked
        reported = tracked is not None and number_of(tracked.resource_version) >= version > 0
        self.seen = bool(self.all) or reported

    @staticmethod
    def _is_later(change: Change, version: int, row: Edit) -> bool:
        if change.resource_version:
            return number_of(change.resource_version) > version
        return change.observed_at > (row.closed_at or row.at)

    def after(self, change: Change) -> str:
        return age((change.at - self.at).total_seconds())


def _sentences(row: Edit, since: _Since, now: datetime) -> Iterator[str]:
    if not since.seen:
        yield "The watch has not reported it yet."
        return
    if any(one.change is ChangeType.DELETED for one in since.later):
        yield "The Lease was deleted since."
        return
    if row.action == Release.action:
        yield _after_release(row, since, now)
    elif row.action == HandOver.action:
        yield _after_hand_over(row, since, now)
    else:
        yield from _after_edit(row, since)


def _after_release(row: Edit, since: _Since, now: datetime) -> str:
    taken = next((one for one in since.later if one.holder is not None), None)
    if taken is None:
        return f"Nobody has acquired it since{_for(now - since.at)}."
    name = short(taken.holder)
    if taken.holder == row.before.get("holderIdentity"):
        return f"{name} took it back after {since.after(taken)}."
    return f"{name} acquired it after {since.after(taken)}."


def _after_hand_over(row: Edit, since: _Since, now: datetime) -> str:
    waited = age((now - since.at).total_seconds())
    preferred = row.after.get("spec.preferredHolder")
    to = preferred or row.after.get("spec.holderIdentity")
    name = short(to)
    for one in since.later:
        if preferred and one.holder == to:
            return f"{name} holds it, {since.after(one)} after that."
        if one.change is ChangeType.EXPIRED and one.holder == to:
            return f"{name} never renewed it: it ran out after {since.after(one)}."
        if one.holder is not None and one.holder != to:
            return f"{short(one.holder)} took it after {since.after(one)}."
    if since.tracked is None or preferred:
        return f"{name} does not hold it yet, after {waited}."
    if since.tracked.renewed_at > since.at and since.tracked.holder == to:
        renewed = age((since.tracked.renewed_at - since.at).total_seconds())
        return f"{name} renews it: last seen {renewed} after the write."
    return f"{name} has not renewed it yet, after {waited}."


def _after_edit(row: Edit, since: _Since) -> Iterator[str]:
    """Say of each field whether it still is as it was written."""
    if since.tracked is None:
        return
    present = _as_document(since.tracked.lease)
    for field, sent in row.after.items():
        path = _path(field)
        found = at_path(present, path)
        name = "/".join(path[1:])
        if (found is MISSING and sent is None) or found == sent:
            yield f"{name} is {_text(sent)}."
            continue
        again = next((one for one in since.later if path[1] in one.fields), None)
        when = f", overwritten after {since.after(again)}" if again else " by now"
        yield f"{name} is {_text(None if found is MISSING else found)}{when}."


def _path(field: str) -> tuple[str, ...]:
    """The path of an audited field; the key of a label may contain dots."""
    part, _, rest = field.partition(".")
    if part == "metadata":
        name, _, key = rest.partition(".")
        return (part, name, key) if key else (part, name)
    return part, rest


def _as_document(lease: Lease) -> dict[str, Any]:
    """The Lease as the API writes it, without fields that are not set."""
    spec: dict[str, Any] = {
        name: value for name, value in msgspec.to_builtins(lease.spec).items() if value is not None
    }
    times = {"acquireTime": lease.spec.acquire_time, "renewTime": lease.spec.renew_time}
    spec |= {name: format_microtime(moment) for name, moment in times.items() if moment}
    meta = lease.metadata
    metadata = {"labels": meta.labels or {}, "annotations": meta.annotations or {}}
    return {"spec": spec, "metadata": metadata}


def _text(value: Any) -> str:
    return "not set" if value in (None, "") else shortened(str(value), MAX_SHOWN)


CHANGES = 20
READINGS = 5  # until the watch reports nothing in between


def _at_one_moment(cluster: WatchedCluster, key: ObjectName) -> tuple[Tracked | None, list[Change]]:
    """The Lease and its newest changes. Else a page says that nobody holds what it shows held."""
    tracked = cluster.store.get(key)
    for _ in range(READINGS):
        _, changes = changes_of(cluster.name, key, CHANGES)
        before, tracked = tracked, cluster.store.get(key)
        if tracked is before:
            break
    return tracked, changes


@require_safe
@viewer_required
def lease_outcome(
    request: ClusterRequest, cluster: str, namespace: str, name: str, number: int
) -> HttpResponse:
    key = ObjectName(namespace, name)
    row = Edit.objects.filter(pk=number, cluster=cluster, namespace=namespace, name=name).first()
    if row is None or not (row.user == request.user or request.user.has_perm(READ_TRAIL)):
        raise Http404(f"No write {number} of {key} in {cluster} is known.")
    shown = readable(row)
    now = clock.now()
    as_of = request.cluster.as_of(now)
    tracked, changes = _at_one_moment(request.cluster, key)
    outcome = outcome_of(shown, tracked, changes, now)
    if shown is not row:
        said = (shown.detail, *outcome.sentences)
        outcome = msgspec.structs.replace(outcome, sentences=said)
    context = {
        "key": str(key),
        "namespace": namespace,
        "name": name,
        "url": lease_url(cluster, key),
        "edit": shown,
        "outcome": outcome,
        "lease": tracked,
        "row": row_view(cluster, tracked, as_of) if tracked else None,
        "read_at": as_of,
    }
    return render(request, "forms/outcome.html", context)
