"""Keep a Lease in less memory: share equal texts within it and among Leases.

The decoder makes a new string for every text; a heartbeat contains its own name three times.
"""

from __future__ import annotations

from sys import intern

import msgspec

from leases.domain.lease import Lease, OwnerReference

_replace = msgspec.structs.replace


def compact(lease: Lease) -> Lease:
    meta, spec = lease.metadata, lease.spec
    owners = meta.owner_references
    if owners is not None:
        owners = tuple([_owner(owner, meta.name) for owner in owners])
    meta = _replace(meta, namespace=intern(meta.namespace), owner_references=owners)
    if spec.holder_identity == meta.name:
        spec = _replace(spec, holder_identity=meta.name)
    return Lease(meta, spec)


def _owner(owner: OwnerReference, name: str) -> OwnerReference:
    return OwnerReference(intern(owner.kind), name if owner.name == name else owner.name)
