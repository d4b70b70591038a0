"""Read the LeaseCandidates of a namespace, if the cluster serves them and we may read them.

Alpha in v1alpha2, beta in v1beta1, both off by default (feature gate CoordinatedLeaderElection).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from leases.domain.election.candidates import Candidate
from leases.domain.lease import ObjectName
from leases.kube.lease_client import LeaseClient, segment
from leases.wire.json_decoding import Undecodable, decoder
from leases.wire.status import NotFound, Status, Unreachable

GROUP = "/apis/coordination.k8s.io"
VERSIONS = ("v1beta1", "v1alpha2")  # the newest first
MAX_CANDIDATES = 500  # per namespace; a Lease has a handful


class _Candidates(msgspec.Struct, frozen=True):
    items: tuple[Candidate, ...] | None = None


_decode: Callable[[bytes], _Candidates] = decoder(_Candidates)


async def candidates_of(client: LeaseClient, lease: ObjectName, *, within: float) -> (
    tuple[Candidate, ...] | None
):  # fmt: skip
    """Return the candidates of a Lease, by name; None if the cluster has no LeaseCandidates.

    `within` is the limit of each request in seconds. Raises ApiError.
    """
    for version in VERSIONS:
        path = f"{GROUP}/{version}/namespaces/{segment(lease.namespace)}/leasecandidates"
        try:
            body = await client.read(path, query=(("limit", str(MAX_CANDIDATES)),), within=within)
        except NotFound:
            continue
        standing = [c for c in _read(body).items or () if c.spec.lease_name == lease.name]
        return tuple(sorted(standing, key=lambda candidate: candidate.name))
    return None


def _read(body: bytes) -> _Candidates:
    try:
        return _decode(body)
    except Undecodable as error:
        sentence = f"The cluster sent something that is no list of LeaseCandidates ({error})."
        raise Unreachable(Status(message=sentence)) from error
