"""A Lease in Kubernetes' own shape, decoded straight from the bytes; and a Node beside it.

Fields: k8s.io/api/coordination/v1/types.go and apimachinery's ObjectMeta. Only fields that a rule
or a page reads are here; the decoder skips the others, above all managedFields.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated

import msgspec

# The decoder refuses values that no API server accepts: sums, indexes and columns rely on it.
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
AwareDatetime = Annotated[datetime, msgspec.Meta(tz=True)]
ResourceVersion = Annotated[str, msgspec.Meta(max_length=32)]
MAX_INT32 = 2**31 - 1
MAX_NAME, MAX_NAMESPACE, MAX_UID = 253, 63, 64
MAX_VERSION_DIGITS = 19  # etcd counts in int64


class ObjectName(msgspec.Struct, frozen=True, order=True, gc=False):
    """Namespace and name, the key of a Lease. Sorts as the API lists."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """metav1.OwnerReference: the fields that decide the kind of a Lease."""

    kind: str = ""
    name: str = ""


class ObjectMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """metav1.ObjectMeta: the fields that Leaseboard reads."""

    name: Annotated[str, msgspec.Meta(max_length=MAX_NAME)] = ""
    namespace: Annotated[str, msgspec.Meta(max_length=MAX_NAMESPACE)] = ""
    uid: Annotated[str, msgspec.Meta(max_length=MAX_UID)] = ""
    resource_version: ResourceVersion = ""
    creation_timestamp: AwareDatetime | None = None
    deletion_timestamp: AwareDatetime | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class LeaseSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """coordination.k8s.io/v1 LeaseSpec, all seven fields."""

    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: AwareDatetime | None = None
    renew_time: AwareDatetime | None = None
    lease_transitions: Int32 | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


_NO_SPEC = LeaseSpec()


class Lease(msgspec.Struct, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: LeaseSpec = _NO_SPEC

    @property
    def key(self) -> ObjectName:
        return ObjectName(self.metadata.namespace, self.metadata.name)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def resource_version(self) -> str:
        return self.metadata.resource_version

    @property
    def holder(self) -> str | None:
        """The named holder. An empty holderIdentity means nobody."""
        return self.spec.holder_identity or None


def number_of(version: str | None) -> int:
    """Return a resourceVersion as a number; 0 if it is none."""
    return int(version) if version and is_number(version) else 0


def is_number(version: str) -> bool:
    """Whether it is a decimal number of at most MAX_VERSION_DIGITS digits."""
    return version.isdecimal() and len(version) <= MAX_VERSION_DIGITS


# A Node turns NotReady after node-monitor-grace-period, 50 s by default.
NOT_READY_GRACE = timedelta(seconds=60)
# The newer label comes first. Sources: kubernetes.io/docs/reference/labels-annotations-taints, and
# each provider's documentation of its node pools.
ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
POOL_LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "node-pool.gke.io/name",
    "worker.gardener.cloud/pool",
    "doks.digitalocean.com/node-pool",
    "node.kubernetes.io/instance-type",  # where there is no pool: machines of one type
)


class Node(msgspec.Struct, frozen=True, gc=False):
    """One Node: `ready` is its condition, if reported."""

    name: str
    ready: bool | None = None
    zone: str = ""
    pool: str = ""


def first_label(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    """Return the first of these labels that is set, or ""."""
    return next((labels[name] for name in names if labels.get(name)), "")
