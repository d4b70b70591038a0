"""The changes that history stores: what differs, who wrote it and when, what makes it one change.

Observed live, it happened when we observed it. After a broken connection, a restart or a list we
have only the holder's claim. We correct it by the holder's known clock skew and keep it within the
time window in which the write must have happened.

docs/words.md defines the words. Holder, acquireTime and uid decide what a write did.
leaseTransitions is only evidence, because many writers miscount (client-go leaderelection.go,
tryAcquireOrRenew and release).

Replicas see the same writes, but each judges deadlines by its own clock.

An Update by one manager takes the fields it changes from all others. Source: structured-merge-diff
merge.Updater, k8s.io/apimachinery/pkg/apis/meta/v1 ManagedFieldsEntry.
"""

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from leases.domain.incident import Cause
from leases.domain.kind import Kind
from leases.domain.known_writers import HEARTBEAT_ANNOTATIONS
from leases.domain.lease import MAX_INT32, Lease, LeaseSpec
from leases.domain.phase import KnownLease, Phase, runs_out_at
from leases.domain.steady_clock import EARLIEST, after


def reconfigured_fields(before: Lease, after: Lease) -> tuple[str, ...]:
    """Return the fields that differ, by their Kubernetes names."""
    old, new = before.spec, after.spec
    differ = {
        "leaseDurationSeconds": old.lease_duration_seconds != new.lease_duration_seconds,
        "strategy": (old.strategy or None) != (new.strategy or None),
        "preferredHolder": (old.preferred_holder or None) != (new.preferred_holder or None),
        "labels": (before.metadata.labels or {}) != (after.metadata.labels or {}),
        "annotations": _lasting(before.metadata.annotations)
        != _lasting(after.metadata.annotations),
    }
    return tuple(name for name, differs in differ.items() if differs)


def _lasting(annotations: dict[str, str] | None) -> dict[str, str]:
    """Return the annotations without those that only show a sign of life."""
    return {k: v for k, v in (annotations or {}).items() if k not in HEARTBEAT_ANNOTATIONS}


class Observation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    now: datetime  # our clock
    since: datetime | None = None  # not live: it was written after this
    inferred: bool = False  # from a list, or replayed after a restart
    listed: bool = False  # from a list, which shows the state but not each write
    remembered: bool = False  # the known state is from the checkpoint, which lacks most renewals
    written: datetime | None = None  # when its field manager says that it wrote, to the second
    watched_since: datetime = EARLIEST  # before it, for a while, nobody watched
    by_hand: bool = False  # a person moved renewTime: that is no renewal of the holder's

    @property
    def live(self) -> bool:
        return self.since is None and not self.inferred


def renewal_moved(before: Lease, after: Lease) -> bool:
    """Whether a field changed that counts as a renewal."""
    old, new = before.spec, after.spec
    return (
        old.renew_time != new.renew_time
        or before.holder != after.holder
        or old.acquire_time != new.acquire_time
        or old.lease_duration_seconds != new.lease_duration_seconds
    )


def duration_edited(before: Lease, after: Lease) -> bool:
    """Whether an edit moved observed_at, and nobody renewed: its duration alone changed."""
    old, new = before.spec, after.spec
    return (
        old.lease_duration_seconds != new.lease_duration_seconds
        and old.renew_time == new.renew_time
        and old.acquire_time == new.acquire_time
        and before.holder == after.holder
    )


def renewed_at(before: KnownLease | None, after: Lease, seen: Observation) -> datetime:
    """Return observed_at after a renewal: now, or the corrected renewTime."""
    claimed = after.spec.renew_time
    if seen.live or claimed is None:
        return seen.now
    if before is not None and claimed == before.lease.spec.renew_time:
        return written_at(before, after, seen)[0]  # another field moved
    skew = None
    if before is not None and before.lease.holder == after.holder:
        skew = before.skew_seconds
    since = before.observed_at if before is not None and seen.remembered else seen.since
    return believed(claimed, skew, since, seen.now)


def believed(
    claimed: datetime, skew: float | None, since: datetime | None, now: datetime
) -> datetime:
    """Correct a claimed time by the skew, and keep it within the time window."""
    if skew:
        claimed = after(claimed, skew)
    if since is not None and claimed < since:
        claimed = since
    return min(claimed, now)


def written_at(before: KnownLease, after: Lease, seen: Observation) -> tuple[datetime, bool]:
    """Return when the write from `before` to `after` happened, and whether that is exact.

    acquireTime says when a holder came. renewTime gives the time of a single write. In a list it is
    only the last of several, except after a release, when nobody renews. Of any other write, its
    field manager has the time.
    """
    if seen.live:
        return seen.now, True
    acquired = after.spec.acquire_time
    acquired_anew = acquired != before.lease.spec.acquire_time
    if acquired is not None and acquired_anew and _inside(acquired, seen):
        return acquired, True
    if after.spec.renew_time != before.lease.spec.renew_time and after.spec.renew_time is not None:
        only_write = not seen.listed or after.holder is None
        if only_write or after.holder == before.lease.holder:
            return renewed_at(before, after, seen), only_write
    return seen.written or seen.now, False


def appeared_at(lease: Lease, holder: str | None, seen: Observation) -> datetime:
    """Return when a new Lease came into its present state."""
    if seen.live:
        return seen.now
    created, acquired = lease.metadata.creation_timestamp, lease.spec.acquire_time
    after_birth = acquired is not None and (created is None or created <= acquired)
    if holder is not None and acquired is not None and after_birth and _inside(acquired, seen):
        return acquired
    if created is not None and seen.since is not None and _inside(created, seen):
        return created
    return seen.now


def last_sign(before: KnownLease, last: Lease, seen: Observation) -> datetime | None:
    """Return after which moment a Lease was deleted, of which a late event tells.

    Nothing says when it was. A holder renews until then, so the last renewal comes close. Whatever
    replaced the Lease came later than that, whenever we hear of it.
    """
    skew = before.skew_seconds if before.lease.holder == last.holder else None
    renewed, asked = last.spec.renew_time, last.metadata.deletion_timestamp
    renewed = after(renewed, skew) if renewed is not None and skew else renewed
    signs = [one for one in (renewed, asked) if one is not None and _inside(one, seen)]
    return max(signs, default=seen.since)


def _inside(claimed: datetime, seen: Observation) -> bool:
    return (seen.since is None or seen.since <= claimed) and claimed <= seen.now


class ChangeType(StrEnum):
    """What happened. The value is the word in JSON, CSS, URLs and on the screen."""

    CREATED = "created"
    ACQUIRED = "acquired"
    RELEASED = "released"
    TAKEN_OVER = "taken_over"
    REPLACED = "replaced"
    EXPIRED = "expired"
    RECOVERED = "recovered"
    RESTARTED = "restarted"
    RECONFIGURED = "reconfigured"
    DELETED = "deleted"


HOLDER_CHANGES = (ChangeType.ACQUIRED, ChangeType.TAKEN_OVER, ChangeType.REPLACED)
# client-go adds one to leaseTransitions when somebody acquires, and at no other time.
COUNTED_ONCE = frozenset({*HOLDER_CHANGES, ChangeType.RESTARTED})
_DURATION = "leaseDurationSeconds"
_END_A_GAP = COUNTED_ONCE | {ChangeType.RECOVERED}
# A Lease that is made anew later than this after its deletion was installed anew: no gap.
REMADE_WITHIN = timedelta(hours=1)
# Each happens once to a Lease, whichever write shows it.
WHOLE_SECOND = timedelta(seconds=1)  # by which Kubernetes cuts a time
ONCE = frozenset({ChangeType.CREATED, ChangeType.DELETED})


class Change(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One change of a Lease. Field names are the contract of the JSON and CSV exports."""

    cluster: str
    namespace: str
    name: str
    uid: str
    kind: Kind
    change: ChangeType
    at: datetime  # when it happened; if inferred, the best estimate
    # Our clock when we learned of it; ends the time window of an inferred change.
    observed_at: datetime
    holder: str | None = None
    previous_holder: str | None = None
    resource_version: str = ""  # of the write; empty if no write caused it
    transitions: int | None = None
    missed: int = 0
    inferred: bool = False
    inferred_since: datetime | None = None
    gap_seconds: float | None = None
    fields: tuple[str, ...] = ()
    writer: str | None = None  # the field manager that moved the field, where the Lease names it
    cause: Cause | None = None  # known later, with the id of the incident that it belongs to
    incident: str | None = None
    # When the last renewal was observed, of `expired`, and of `created` (None: nobody ever held or
    # renewed it); not exported.
    renewed_at: datetime | None = None
    # "": uid, change and resourceVersion tell it; not exported. Stories of incidents are stored
    # with its first name.
    own_identity: str = msgspec.field(default="", name="stored_identity")


class UnreadableChange(Change, frozen=True, kw_only=True, gc=False):
    """Stands for a row of history that cannot be read, for example one of a later version."""

    row: int


def appeared(
    cluster: str,
    lease: Lease,
    *,
    holder: str | None,
    kind: Kind,
    seen: Observation,
    at: datetime,
    gap_since: datetime | None,
    renewed_at: datetime | None = None,
) -> Change:
    """Make `created`. `gap_since`: when the earlier Lease of this name was last validly held."""
    if holder is None or seen.inferred or (gap_since and at - gap_since > REMADE_WITHIN):
        gap_since = None
    change = _make_change(
        ChangeType.CREATED, cluster, lease, kind, seen, at, holder=holder, gap_since=gap_since
    )
    return change if renewed_at is None else replace(change, renewed_at=renewed_at)


def vanished(
    cluster: str, before: KnownLease, last: Lease, *, seen: Observation, at: datetime
) -> Change:
    """Make `deleted`; `last` is the Lease in the DELETED event, or the known one."""
    kind, holder = before.kind, before.holder
    return _make_change(ChangeType.DELETED, cluster, last, kind, seen, at, previous=holder)


def ran_out(
    cluster: str, before: KnownLease, *, at: datetime, now: datetime, unseen_since: datetime | None
) -> Change:
    """Make `expired`. `unseen_since` is set if the cluster was not observed at that time."""
    kind, lease, holder = before.kind, before.lease, before.holder
    seen = Observation(now=now, since=unseen_since, inferred=unseen_since is not None)
    change = _make_change(
        ChangeType.EXPIRED, cluster, lease, kind, seen, at, holder=holder, previous=holder,
        rewritten=before.rewritten,
    )  # fmt: skip
    return replace(change, renewed_at=before.renewed_at)


def compare(
    cluster: str,
    before: KnownLease,
    after: Lease,
    *,
    holder: str | None,
    kind: Kind,
    seen: Observation,
) -> tuple[Change, ...]:
    """Return the changes between the known state and a later observation of the same uid.

    `holder` and `kind` are the ones that count now. The caller has emitted any `expired` that was
    due before; if `seen.inferred`, none is made up.
    """
    at, sure = written_at(before, after, seen)
    fields = reconfigured_fields(before.lease, after)
    revives = (_DURATION,) if duration_edited(before.lease, after) else ()
    of = {ChangeType.RECONFIGURED: fields, ChangeType.RECOVERED: revives}
    types = _types(before, after, holder, at, reconfigured=bool(fields))
    found = []
    for index, change in enumerate(types):
        missed = 0 if index else _missed(change, before.lease, after)
        found.append(
            _make_change(
                change,
                cluster,
                after,
                kind,
                seen,
                at,
                holder=holder,
                previous=before.holder,
                missed=missed,
                gap_since=_gap_since(change, before, seen, missed) if sure else None,
                fields=of.get(change, ()),
            )
        )
    return tuple(found)


def _gap_since(
    change: ChangeType, before: KnownLease, seen: Observation, missed: int
) -> datetime | None:
    """Return since when nobody held it validly: at the earliest, if nobody saw it run out."""
    if change is ChangeType.TAKEN_OVER and before.gap_since is None and not missed:
        runs_out = runs_out_at(before.lease, before.observed_at)
        # It was held when we lost sight, by renewals that may not be known any more.
        return runs_out if runs_out is None or seen.since is None else max(runs_out, seen.since)
    return before.gap_since if change in _END_A_GAP else None


def _types(
    before: KnownLease, after: Lease, holder: str | None, at: datetime, *, reconfigured: bool
) -> list[ChangeType]:
    if holder != before.holder:
        return [_of_holder(before, holder, at)]
    types = []
    if holder is not None:
        if _acquired_anew(before, after):
            types.append(ChangeType.RESTARTED)
        elif before.phase is Phase.EXPIRED and renewal_moved(before.lease, after):
            types.append(ChangeType.RECOVERED)
    renewed = after.spec.renew_time != before.lease.spec.renew_time
    first_renewal = renewed and not before.settled and holder is not None
    if reconfigured and not first_renewal:
        types.append(ChangeType.RECONFIGURED)
    return types


def _of_holder(before: KnownLease, holder: str | None, at: datetime) -> ChangeType:
    if holder is None:
        return ChangeType.RELEASED
    if before.holder is None:
        return ChangeType.ACQUIRED
    runs_out = runs_out_at(before.lease, before.observed_at)
    valid = runs_out is None or at < runs_out
    return ChangeType.REPLACED if valid else ChangeType.TAKEN_OVER


def _acquired_anew(before: KnownLease, after: Lease) -> bool:
    """Whether the same holder acquired again, and not only added acquireTime when it renewed."""
    acquired, earlier = after.spec.acquire_time, before.lease.spec.acquire_time
    if acquired is None or acquired == earlier:
        return False
    return earlier is not None or before.settled


def _missed(change: ChangeType, before: Lease, after: Lease) -> int:
    old, new = before.spec.lease_transitions, after.spec.lease_transitions
    if old is None or new is None:
        return 0
    return min(max(0, new - old - (change in COUNTED_ONCE)), MAX_INT32)


def _make_change(
    change: ChangeType,
    cluster: str,
    lease: Lease,
    kind: Kind,
    seen: Observation,
    at: datetime,
    *,
    holder: str | None = None,
    previous: str | None = None,
    missed: int = 0,
    gap_since: datetime | None = None,
    fields: tuple[str, ...] = (),
    rewritten: str = "",
) -> Change:
    meta = lease.metadata
    version = "" if change is ChangeType.EXPIRED else meta.resource_version
    renewal = "" if change in ONCE else _renewal(lease.spec, rewritten)
    return Change(
        cluster=cluster,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        kind=kind,
        change=change,
        at=at,
        observed_at=seen.now,
        holder=holder,
        previous_holder=previous,
        resource_version=version,
        transitions=lease.spec.lease_transitions,
        missed=missed,
        inferred=seen.inferred,
        inferred_since=seen.since if seen.inferred else None,
        gap_seconds=None if gap_since is None else max(0.0, (at - gap_since).total_seconds()),
        fields=fields,
        own_identity=_identity(meta.uid, change, version, renewal) if renewal else "",
    )


def _renewal(spec: LeaseSpec, rewritten: str) -> str:
    """Return the fields that move observed_at: equal for every observer of this renewal.

    `rewritten`: the resourceVersion that moved it where they stayed.
    """
    acquired = spec.acquire_time.isoformat() if spec.acquire_time else ""
    renewed = spec.renew_time.isoformat() if spec.renew_time else ""
    told = f"{acquired} {renewed} {spec.lease_duration_seconds} {spec.holder_identity or ''}"
    return f"{told} {rewritten}" if rewritten else told


# One write makes at most one of these. Which one may depend on the clock: one replica may see a
# take-over just after the expiry, another a replacement just before it.
OF_THE_TERM = COUNTED_ONCE | {ChangeType.RELEASED, ChangeType.RECOVERED}


_NO_RENEWAL = hashlib.sha256(b"").hexdigest()[:32]
_REBUILT = (_NO_RENEWAL, *(f" {word}" for word in ONCE))


def not_rebuilt(stored: str) -> str:
    """A stored identity, or "" where `identity` finds it without the renewal fields."""
    return "" if stored.endswith(_REBUILT) else stored


def identity(change: Change) -> str:
    """Return the key that makes a change unique in its Lease's history.

    resourceVersion alone is not enough: a cluster restored from a backup repeats numbers. The time
    of an expiry differs from clock to clock, so the renewal that expired stands for it.
    """
    return change.own_identity or _identity(change.uid, change.change, change.resource_version)


def _identity(uid: str, change: ChangeType, version: str, renewal: str = "") -> str:
    if change in ONCE:
        return f"{uid} {change}"
    word = "term" if change in OF_THE_TERM else change
    digest = hashlib.sha256(renewal.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"{uid} {word} {version} {digest}"


_LONG_AGO = datetime.min.replace(tzinfo=UTC)
# The field that each kind of change moves; all others set holderIdentity.
_MOVED = {ChangeType.RESTARTED: "spec.acquireTime", ChangeType.RECOVERED: "spec.renewTime"}
_NOT_WRITTEN = (ChangeType.EXPIRED, ChangeType.DELETED)


class FieldManager(msgspec.Struct, frozen=True, gc=False):
    """One entry of managedFields. A field is `spec.renewTime`, `labels.team`, `annotations.x`."""

    name: str
    operation: str = ""  # Update or Apply
    time: datetime | None = None  # whole seconds, by the API server's clock
    fields: frozenset[str] = frozenset()


Managers = tuple[FieldManager, ...]


def last_write(managers: Managers, seen: Observation) -> datetime | None:
    """Return when a Lease of which a late event tells was written, if its managers say so."""
    times = [one.time for one in managers if one.time is not None]
    if seen.live or not times:
        return None
    newest = max(times)
    if seen.since is None or newest < seen.since - WHOLE_SECOND:
        return None
    return min(max(newest, seen.since), seen.now)


def writer_of(change: Change, managers: Managers, before: Lease | None, after: Lease) -> str | None:
    """Return the field manager that wrote a change; None: nothing says so."""
    if not managers or change.change in _NOT_WRITTEN:
        return None
    if change.change is ChangeType.RECONFIGURED and before is not None:
        moved = frozenset(_reconfigured(before, after))
    elif change.fields:  # an edit of the duration, and no renewal
        moved = frozenset(f"spec.{field}" for field in change.fields)
    else:
        moved = frozenset({_MOVED.get(change.change, "spec.holderIdentity")})
    # A removed field has no owner: then the newest entry must do.
    best = max(managers, key=lambda one: (len(one.fields & moved), one.time or _LONG_AGO))
    return best.name or None


def owner_of(field: str, managers: Sequence[FieldManager]) -> str | None:
    """Return the manager that owns a field, the newest if several do."""
    owners = [one for one in managers if field in one.fields]
    return max(owners, key=lambda one: one.time or _LONG_AGO).name if owners else None


def _reconfigured(before: Lease, after: Lease) -> Iterator[str]:
    for field in reconfigured_fields(before, after):
        if field not in ("labels", "annotations"):
            yield f"spec.{field}"
            continue
        old: dict[str, str] = getattr(before.metadata, field) or {}
        new: dict[str, str] = getattr(after.metadata, field) or {}
        yield from (f"{field}.{key}" for key in new if old.get(key) != new[key])
