"""What a resource is: its names, type, table columns, and the rules in which resources differ.

`registry/core/` defines Nodes, Pods, Services and Events with it.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from leases.apiserver.codec import schema
from leases.apiserver.codec.protobuf import MESSAGES
from leases.apiserver.errors import GROUP
from leases.wire.name_rules import config_key_errors, label_name_errors, subdomain_errors
from leases.wire.selectors import FIELDS
from leases.wire.status import StatusCause

NAME_LABEL = "kubernetes.io/metadata.name"
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CLE_GATE = "CoordinatedLeaderElection"
Object = dict[str, Any]
NameErrors = Callable[..., list[str]]
# Field of a selector to what reads its value in the stored object; None: a Version holds it.
Selectable = Mapping[str, Callable[[Object], str] | None]


class Column(msgspec.Struct, frozen=True):
    """A column of the table that kubectl shows. `age`: its cells are times, shown as ages.

    `priority` 1: only `kubectl get -o wide` shows it.
    """

    name: str
    description: str
    cell: Callable[[Object], Any]
    format: str = ""
    priority: int = 0
    age: bool = False


class Conversion(msgspec.Struct, frozen=True):
    """To the stored version, which is that of the core group, and back. Both return new objects."""

    inward: Callable[[Object], Object]
    outward: Callable[[Object], Object]


class Resource(msgspec.Struct, frozen=True):
    """One resource in one version. Two versions of one plural share their stored objects.

    `prepare` gets the new object, the stored one (None at creation) and the subresource: it
    restores what the request cannot change. `errors` gets the new and the stored object.
    """

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
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    warning: str = ""
    subresources: tuple[str, ...] = ()
    creates_on_update: bool = True  # AllowCreateOnUpdate
    unconditional_update: bool = False  # AllowUnconditionalUpdate
    selectable: Selectable = MappingProxyType(dict.fromkeys(FIELDS))
    prepare: Callable[[Object, Object | None, str], None] | None = None
    errors: Callable[[Object, Object | None], list[StatusCause]] | None = None
    conversion: Conversion | None = None

    @property
    def storage_hash(self) -> str:
        """storageVersionHash. Source: apiserver/pkg/endpoints/discovery/storageversionhash.go."""
        version = "/v1" if self.conversion else f"{self.group}/{self.version}"
        digest = hashlib.sha256(f"{version}/{self.kind}".encode()).digest()
        return base64.b64encode(digest[:8]).decode()

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
        """Whether answers may be protobuf: not for Nodes, which are kept as they come."""
        return self.schema.message in MESSAGES and self.schema.message != "Node"

    @property
    def package(self) -> str:
        """The Go package of the internal type."""
        return "core" if self.conversion else self.group.partition(".")[0] or "core"

    def shown(self, stored: Object) -> Object:
        """A stored object in this version."""
        return stored if self.conversion is None else self.conversion.outward(stored)

    @property
    def head(self) -> bytes:
        """The JSON that completes the body of a stored version when put before it."""
        return f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'.encode()


def _spec(name: str) -> Callable[[Object], Any]:
    return lambda obj: obj["spec"].get(name, "")


NAME = Column(
    "Name",
    "Name must be unique within a namespace. Is required when creating resources, although some "
    "resources may allow a client to request the generation of an appropriate name automatically. "
    "Name is primarily intended for creation idempotence and configuration definition. Cannot be "
    "updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
    lambda obj: obj["metadata"].get("name", ""),
    "name",
)
AGE = Column(
    "Age",
    "CreationTimestamp is a timestamp representing the server time when this object was created. "
    "It "
    "is not guaranteed to be set in happens-before order across separate operations. Clients may "
    "not "
    "set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. "
    "Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
    lambda obj: obj["metadata"].get("creationTimestamp"),
    age=True,
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
    columns=(NAME, _HOLDER, AGE),
    name_errors=subdomain_errors,
)
CANDIDATES = Resource(
    plural="leasecandidates",
    singular="leasecandidate",
    kind="LeaseCandidate",
    group=GROUP,
    version="v1beta1",
    schema=schema.LEASE_CANDIDATE,
    columns=(
        NAME,
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
        AGE,
    ),
    name_errors=config_key_errors,
    warning=(
        "coordination.k8s.io/v1beta1 LeaseCandidate is deprecated in v1.36+, unavailable in v1.39+"
    ),
)


def _phase(namespace: Object) -> str:
    phase: str = namespace["status"].get("phase", "")
    return phase


def _prepare_namespace(namespace: Object, old: Object | None, subresource: str) -> None:
    """Make the name a label, and keep what only another subresource changes.

    Source: SetDefaults_Namespace in pkg/apis/core/v1/defaults.go, pkg/registry/core/namespace.
    """
    if old is not None:
        kept = {"": ("spec", "status"), "status": ("spec",), "finalize": ("status",)}
        namespace |= {part: old[part] for part in kept[subresource]}
    meta = namespace["metadata"]
    labels, name = meta.get("labels", {}), meta.get("name")
    if name and labels.get(NAME_LABEL) != name:
        meta["labels"] = dict(sorted({**labels, NAME_LABEL: name}.items()))


NAMESPACES = Resource(
    plural="namespaces",
    singular="namespace",
    kind="Namespace",
    group="",
    version="v1",
    schema=schema.NAMESPACE,
    columns=(
        NAME,
        Column(
            "Status",
            "The status of the namespace",
            _phase,
        ),
        AGE,
    ),
    name_errors=label_name_errors,
    namespaced=False,
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    short_names=("ns",),
    creates_on_update=False,
    unconditional_update=True,
    selectable={"metadata.name": None, "status.phase": _phase},
    subresources=("finalize", "status"),
    prepare=_prepare_namespace,
)


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
    _review(schema.WHO_AM_I, "authentication.k8s.io"),
    _review(schema.TOKEN, "authentication.k8s.io"),
    _review(schema.LOCAL_ACCESS, namespaced=True),
    _review(schema.SELF_ACCESS),
    _review(schema.SELF_RULES),
    _review(schema.SUBJECT_ACCESS),
)
