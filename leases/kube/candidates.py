"""Read the LeaseCandidates of a namespace, if the cluster serves them and we may read them.

Alpha in v1alpha2, beta in v1beta1, both off by default (feature gate CoordinatedLeaderElection).
"""

from __future__ import annotations

import msgspec

from leases.domain.election.candidates import Candidate
from leases.domain.lease import ObjectName
from leases.kube.lease_client import LeaseClient, segment
from leases.wire.status import NotFound

GROUP = "/apis/coordination.k8s.io"
VERSIONS = ("v1beta1", "v1alpha2")  # the newest first
MAX_CANDIDATES = 500  # per namespace; a Lease has a handful
_QUERY = (("limit", str(MAX_CANDIDATES)),)


class _Candidates(msgspec.Struct, frozen=True):
    items: tuple[Candidate, ...] | None = None


async def candidates_of(client: LeaseClient, lease: ObjectName, *, within: float) -> (
    tuple[Candidate, ...] | None
):  # fmt: skip
    """Return the candidates of a Lease, by name; None if the cluster has no LeaseCandidates.

    `within` is the limit of each request in seconds. Raises ApiError.
    """
    for version in VERSIONS:
        path = f"{GROUP}/{version}/namespaces/{segment(lease.namespace)}/leasecandidates"
        try:
            found = await client.read(
                path, _Candidates, "list of LeaseCandidates", query=_QUERY, within=within
            )
        except NotFound:
            continue
        standing = [c for c in found.items or () if c.spec.lease_name == lease.name]
        return tuple(sorted(standing, key=lambda candidate: candidate.name))
    return None
