"""Ask a cluster what we may do: SelfSubjectAccessReview (authorization.k8s.io/v1)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from leases.kube.lease_client import LeaseClient
from leases.wire.json_decoding import Undecodable, decoder
from leases.wire.status import Unreachable

PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
GROUP = "coordination.k8s.io"


class _Status(msgspec.Struct, frozen=True):
    allowed: bool


class _Review(msgspec.Struct, frozen=True):
    status: _Status


_decode: Callable[[bytes], _Review] = decoder(_Review)


async def may(
    client: LeaseClient,
    verb: str,
    namespace: str,
    *,
    within: float,
    resource: str = "leases",
    group: str = GROUP,
) -> bool:
    """Return whether the cluster allows the verb in a namespace; "": in all. Raises ApiError.

    The question is about the user for whom the client acts.
    """
    wanted = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": wanted},
    }
    answer = await client.send("POST", PATH, body=body, within=within)
    try:
        return _decode(answer).status.allowed
    except Undecodable as error:
        raise Unreachable(f"The cluster sent something that is no review ({error}).") from error
