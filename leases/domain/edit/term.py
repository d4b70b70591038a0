"""Identify the term of a Lease: a form is guarded by it, because renewals leave it unchanged."""

from __future__ import annotations

import hashlib

import msgspec

from leases.domain.lease import Lease


def term_of(lease: Lease) -> str:
    """Return a digest that identifies the current term; renewals do not change it."""
    spec = lease.spec
    parts = (lease.uid, lease.holder, spec.acquire_time, spec.lease_transitions or 0)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
