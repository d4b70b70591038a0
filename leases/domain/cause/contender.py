"""What the identity of a holder says of its Pod: its workload, and the template it was made from.

Source: k8s.io/kubernetes pkg/controller (ReplicaSets end in the hash of their Pod template, Pods in
five random letters), pkg/controller/statefulset (Pods end in their ordinal).
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from leases.domain.holder_identity import split_holder

_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
_of_deployment = re.compile(rf"(.+)-({_SAFE}{{6,10}}|[0-9]{{8,10}})-{_SAFE}{{5}}").fullmatch
_of_set = re.compile(rf"(.+)-{_SAFE}{{5}}").fullmatch
_with_ordinal = re.compile(r"(.+)-([0-9]+)").fullmatch


class Contender(msgspec.Struct, frozen=True):
    """`template` is the hash of its ReplicaSet; `ordinal` may be a StatefulSet's, or a node's."""

    identity: str
    host: str
    workload: str
    template: str = ""
    ordinal: str = ""

    @property
    def is_pod(self) -> bool:
        """Whether the host can only be a Pod."""
        return bool(self.template)

    @property
    def has_suffix(self) -> bool:
        """Whether the identity names one process, and not only its host."""
        return split_holder(self.identity).suffix is not None


@lru_cache(4096)
def contender(identity: str | None) -> Contender | None:
    """Read an identity; None: nobody."""
    if not identity:
        return None
    host = split_holder(identity).host or identity
    if match := _of_deployment(host):
        return Contender(identity, host, match[1], template=match[2])
    if match := _with_ordinal(host):
        return Contender(identity, host, match[1], ordinal=match[2])
    if match := _of_set(host):
        return Contender(identity, host, match[1])
    return Contender(identity, host, host)
