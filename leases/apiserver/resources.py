"""The served resources: names, versions, types, table columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from leases.apiserver.codec import review_types, schema
from leases.apiserver.codec.protobuf import MESSAGES
from leases.apiserver.errors import GROUP
from leases.wire.name_rules import config_key_errors, label_name_errors, subdomain_errors

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
NameErrors = Callable[..., list[str]]
CLE_GATE = "CoordinatedLeaderElection"


class Column(msgspec.Struct, frozen=True):
    """A column of the table that kubectl shows; the first one is always the name."""

    name: str
    description: str
    format: str = ""
    cell: Callable[[dict[str, Any]], Any] | None = None


class Resource(msgspec.Struct, frozen=True):
    """One resource in one version."""

    plural: str
    singular: str
    kind: str
    group: str
    version: str
    schema: schema.Structure
    columns: tuple[Column, ...]
    name_errors: NameErrors
    namespaced: bool = True
    verbs: tuple[str, ...] = ALL_VERBS
    storage_hash: str = ""
    short_names: tuple[str, ...] = ()
    warning: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def is_review(self) -> bool:
        """Whether creates are answered and nothing is stored."""
        return self.verbs == ("create",)

    @property
    def protobuf(self) -> bool:
        """Whether its objects have a protobuf encoding here."""
        return self.kind in MESSAGES

    @property
    def head(self) -> bytes:
        """The JSON that completes the body of a stored version when put before it."""
        return f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'.encode()


def _spec(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda obj: obj["spec"].get(name, "")


_NAME = Column(
    "Name",
    "Name must be unique within a namespace. Is required when creating resources, although some "
    "resources may allow a client to request the generation of an appropriate name automatically. "
    "Name is primarily intended for creation idempotence and configuration definition. Cannot be "
    "updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
    "name",
)
_AGE = Column(
    "Age",
    "CreationTimestamp is a timestamp representing the server time when this object was created. "
    "It "
    "is not guaranteed to be set in happens-before order across separate operations. Clients may "
    "not "
    "set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. "
    "Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
)
_HOLDER = Column(
    "Holder",
    "holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader "
    "Election is used, the holder identity must be equal to the elected "
    "LeaseCandidate.metadata.name "
    "field.",
    cell=_spec("holderIdentity"),
)

LEASES = Resource(
    plural="leases",
    singular="lease",
    kind="Lease",
    group=GROUP,
    version="v1",
    schema=schema.LEASE,
    columns=(_NAME, _HOLDER, _AGE),
    name_errors=subdomain_errors,
    storage_hash="gqkMMb/YqFM=",
)
CANDIDATES = Resource(
    plural="leasecandidates",
    singular="leasecandidate",
    kind="LeaseCandidate",
    group=GROUP,
    version="v1beta1",
    schema=schema.LEASE_CANDIDATE,
    columns=(
        _NAME,
        Column(
            "LeaseName",
            "LeaseName is the name of the lease for which this candidate is contending. The "
            "limits on "
            "this field are the same as on Lease.name. Multiple lease candidates may reference "
            "the same "
            "Lease.name. This field is immutable.",
            cell=_spec("leaseName"),
        ),
        Column("BinaryVersion", "", cell=_spec("binaryVersion")),
        Column("EmulationVersion", "", cell=_spec("emulationVersion")),
        _AGE,
    ),
    name_errors=config_key_errors,
    storage_hash="lvME0iHWE20=",
    warning=(
        "coordination.k8s.io/v1beta1 LeaseCandidate is deprecated in v1.36+, unavailable in v1.39+"
    ),
)
NAMESPACES = Resource(
    plural="namespaces",
    singular="namespace",
    kind="Namespace",
    group="",
    version="v1",
    schema=schema.NAMESPACE,
    columns=(
        _NAME,
        Column(
            "Status", "The status of the namespace", cell=lambda obj: obj["status"].get("phase", "")
        ),
        _AGE,
    ),
    name_errors=label_name_errors,
    namespaced=False,
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    short_names=("ns",),
)


def served(gates: frozenset[str]) -> tuple[Resource, ...]:
    """The resources of a server with these feature gates on."""
    return (LEASES, CANDIDATES, NAMESPACES) if CLE_GATE in gates else (LEASES, NAMESPACES)


def _review(
    kind: schema.Structure, group: str = "authorization.k8s.io", *, namespaced: bool = False
) -> Resource:
    """A kind that only answers: a create stores nothing."""
    singular = kind.short.lower()
    return Resource(
        plural=f"{singular}s",
        singular=singular,
        kind=kind.short,
        group=group,
        version="v1",
        schema=kind,
        columns=(),
        name_errors=subdomain_errors,
        namespaced=namespaced,
        verbs=("create",),
    )


REVIEWS = (
    _review(review_types.WHO_AM_I, "authentication.k8s.io"),
    _review(review_types.TOKEN, "authentication.k8s.io"),
    _review(review_types.LOCAL_ACCESS, namespaced=True),
    _review(review_types.SELF_ACCESS),
    _review(review_types.SELF_RULES),
    _review(review_types.SUBJECT_ACCESS),
)
