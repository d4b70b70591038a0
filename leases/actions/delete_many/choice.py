"""The Leases that a person chose to delete, as they were then."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from leases.domain.edit.term import term_of
from leases.domain.lease import Lease, ObjectName


class ChosenLease(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One Lease. Its delete is conditional on uid and resource_version.

    `term` is set if the Lease was held and is to be deleted all the same: a renewal within that
    term is then no reason to leave it alone.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    holder: str | None = None
    renew_time: datetime | None = None
    term: str = ""

    @property
    def key(self) -> ObjectName:
        return ObjectName(self.namespace, self.name)


def chosen(lease: Lease, *, held: bool) -> ChosenLease:
    return ChosenLease(
        lease.key.namespace,
        lease.key.name,
        lease.uid,
        lease.resource_version,
        lease.holder,
        lease.spec.renew_time,
        term_of(lease) if held else "",
    )


def pack(leases: Sequence[ChosenLease]) -> bytes:
    """For the database: 10,000 Leases take about half a megabyte."""
    return zlib.compress(msgspec.json.encode(leases))


def unpack(packed: bytes) -> list[ChosenLease]:
    return msgspec.json.decode(zlib.decompress(packed), type=list[ChosenLease])


def digest(leases: Iterable[tuple[Lease, bool]]) -> str:
    """Identify a choice: names, uids, and whether each is held. Renewals do not change it."""
    sha = hashlib.sha256()
    for lease, held in leases:
        sha.update(f"{lease.key}\0{lease.uid}\0{held}\n".encode(errors="surrogatepass"))
    return sha.hexdigest()
