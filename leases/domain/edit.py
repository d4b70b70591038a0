"""What a person changes in a Lease, as a merge patch of exactly those fields.

Sources: k8s.io/client-go/tools/leaderelection/leaderelection.go, `release` and `tryAcquireOrRenew`;
resourcelock/leaselock.go, `LeaderElectionRecordToLeaseSpec`.
"""

import copy
import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar

import msgspec

from leases.domain.lease import MAX_INT32, Lease, ObjectName


class FieldWriter(msgspec.Struct, frozen=True):
    """`time` is RFC 3339 text, "" if it is not told."""

    manager: str
    time: str


def writer_of(lease: dict[str, Any], path: tuple[str, ...]) -> FieldWriter | None:
    """Return the manager that wrote the field last; None if no entry has the field."""
    found = [
        FieldWriter(str(entry.get("manager") or ""), str(entry.get("time") or ""))
        for entry in lease.get("metadata", {}).get("managedFields") or ()
        if isinstance(entry, dict) and _owns(entry.get("fieldsV1"), path)
    ]
    return max(found, key=lambda writer: writer.time, default=None)


def _owns(fields: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(fields, dict) or f"f:{name}" not in fields:
            return False
        fields = fields[f"f:{name}"]
    return True


RELEASED_SECONDS = 1
NOW = "now"  # instead of a time: the moment of writing
TIMES = ("acquireTime", "renewTime")


class LeaseWrite(msgspec.Struct, frozen=True):
    """One write of a Lease. `action` is its name in the audit trail, `verb` that of the API."""

    action: ClassVar[str]
    verb: ClassVar[str] = "patch"

    def patch(self, current: Lease, *, now: datetime) -> dict[str, Any]:
        """Return the merge patch for the current Lease, without metadata.resourceVersion."""
        return {}


class Delete(LeaseWrite, frozen=True):
    """Delete the Lease in the version that was read."""

    action = "lease.delete"
    verb = "delete"


class NewLease(LeaseWrite, frozen=True, kw_only=True):
    """The Lease that a person typed. No holder means vacant, no duration means untimed."""

    action = "lease.create"
    verb = "create"

    key: ObjectName
    holder: str = ""
    duration_seconds: int | None = None
    transitions: int | None = None
    strategy: str = ""
    preferred_holder: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}

    def body(self, *, now: datetime) -> dict[str, Any]:
        """Return the object to send.

        As client-go creates it (leaderelection.go, tryAcquireOrRenew): a holder acquires and renews
        now, and transitions start at 0, or at the number that was typed. Nobody is written as "",
        never as null: a null holder beside a live LeaseCandidate has crashed a kube-apiserver.
        """
        spec: dict[str, Any] = {"holderIdentity": self.holder}
        if self.duration_seconds is not None:
            spec["leaseDurationSeconds"] = self.duration_seconds
        if self.holder:
            spec |= {"acquireTime": stamp(now), "renewTime": stamp(now), "leaseTransitions": 0}
        if self.transitions is not None:
            spec["leaseTransitions"] = self.transitions
        optional = {"strategy": self.strategy, "preferredHolder": self.preferred_holder}
        spec |= {name: value for name, value in optional.items() if value}
        metadata: dict[str, Any] = {"namespace": self.key.namespace, "name": self.key.name}
        maps = {"labels": dict(self.labels), "annotations": dict(self.annotations)}
        metadata |= {name: values for name, values in maps.items() if values}
        api = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        return api | {"metadata": metadata, "spec": spec}


class FieldEdit(LeaseWrite, frozen=True, kw_only=True):
    """The edited fields by their API names; None removes one, and no holder is written as "".

    A time is RFC 3339 text or NOW.
    """

    action = "lease.edit"

    spec: Mapping[str, str | int | None] = {}
    labels: Mapping[str, str | None] = {}
    annotations: Mapping[str, str | None] = {}

    def patch(self, current: Lease, *, now: datetime) -> dict[str, Any]:
        spec: dict[str, Any] = dict(self.spec)
        for name in TIMES:
            if spec.get(name) == NOW:
                spec[name] = stamp(now)
        if "holderIdentity" in spec:
            spec["holderIdentity"] = spec["holderIdentity"] or ""
        metadata: dict[str, Any] = {}
        for part, wanted, known in (
            ("labels", self.labels, current.metadata.labels or {}),
            ("annotations", self.annotations, current.metadata.annotations or {}),
        ):
            sent = {
                key: value for key, value in wanted.items() if key in known or value is not None
            }
            metadata |= {part: sent} if sent else {}
        return ({"metadata": metadata} if metadata else {}) | ({"spec": spec} if spec else {})


class Release(LeaseWrite, frozen=True):
    """Clear the holder as client-go does: an empty holder that lasted 1 s, both times now."""

    action = "lease.release"

    def patch(self, current: Lease, *, now: datetime) -> dict[str, Any]:
        spec = {
            "holderIdentity": "",
            "leaseDurationSeconds": RELEASED_SECONDS,
            "acquireTime": stamp(now),
            "renewTime": stamp(now),
        }
        return {"spec": spec}


class HandOver(LeaseWrite, frozen=True):
    """Name another holder.

    Of a coordinated Lease only preferredHolder is set: the API server ends the term itself.
    """

    action = "lease.hand_over"

    to: str

    def patch(self, current: Lease, *, now: datetime) -> dict[str, Any]:
        if is_coordinated(current):
            return {"spec": {"preferredHolder": self.to}}
        counted = (current.spec.lease_transitions or 0) + 1
        spec = {
            "holderIdentity": self.to,
            "acquireTime": stamp(now),
            "renewTime": stamp(now),
            "leaseTransitions": min(counted, MAX_INT32),  # the API accepts no more
        }
        return {"spec": spec}


class YamlEdit(LeaseWrite, frozen=True):
    """A patch between the YAML that was shown and the YAML that was sent.

    A removed holder is written as "", never null: null crashes a kube-apiserver 1.36 that has live
    candidates for the Lease.
    """

    action = "lease.yaml"

    changes: Mapping[str, Any]

    def patch(self, current: Lease, *, now: datetime) -> dict[str, Any]:
        patch = dict(self.changes)
        spec = patch.get("spec")
        if isinstance(spec, dict) and "holderIdentity" in spec:
            patch["spec"] = spec | {"holderIdentity": spec["holderIdentity"] or ""}
        return patch


def is_coordinated(lease: Lease) -> bool:
    """Whether the API server elects the holder (coordinated leader election)."""
    return bool(lease.spec.strategy)


def stamp(moment: datetime) -> str:
    """Format a moment in UTC as a MicroTime."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


MISSING = object()
VERSION = ("metadata", "resourceVersion")


class Kept(msgspec.Struct, frozen=True):
    """A field that the server did not take as it was sent; `got` is None if it is not there."""

    path: str
    sent: Any
    got: Any


def merged(target: Any, patch: Any) -> Any:
    """Apply a patch; neither argument is changed."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def patch_between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the smallest patch that turns one object into the other. A list is one value."""
    patch: dict[str, Any] = {}
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name), after.get(name)
        if old == new and type(old) is type(new):
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            if inner := patch_between(old, new):
                patch[name] = inner
        else:
            patch[name] = new
    return patch


def leaves(
    patch: dict[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the value of each field that a patch writes or (None) removes."""
    for name, value in patch.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name), value


def at_path(item: Any, path: tuple[str, ...]) -> Any:
    """Return the value at a path, or MISSING."""
    for name in path:
        if not isinstance(item, dict) or name not in item:
            return MISSING
        item = item[name]
    return item


def not_taken(patch: dict[str, Any], after: dict[str, Any]) -> tuple[Kept, ...]:
    """Return the fields that differ from the patch in the server's answer to it.

    A server drops unknown fields, and fields whose feature gate is off, without an error.
    """
    found = []
    for path, sent in leaves(patch):
        got = at_path(after, path)
        if got is MISSING or got is None:
            got = None
        if sent in (None, {}) and not got:
            continue
        if got != sent and path != VERSION:
            found.append(Kept(".".join(path), sent, got))
    return tuple(found)


def term_of(lease: Lease) -> str:
    """Return digests that identify the Lease and its term; renewals do not change them."""
    spec = lease.spec
    parts = (lease.uid, lease.holder, spec.acquire_time, spec.lease_transitions or 0)
    return f"{_digest(lease.uid)}-{_digest(parts)}"


def is_of_another_lease(term: str, lease: Lease) -> bool:
    """Whether this was the term of a Lease of the same name that was deleted since."""
    of, dash, _ = term.partition("-")
    return bool(dash) and of != _digest(lease.uid)


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:31]
