"""Programs whose Leases would be misjudged by their shape, each with its source.

The first entry whose conditions all match decides. `name` and `namespace` are whole words, or end
in `*`.
"""

import re

import msgspec

from leases.domain.lease import Lease


class KnownWriter(msgspec.Struct, frozen=True):
    kind: str  # a value of Kind, which cannot be imported here
    source: str  # who writes it, and the proof
    namespace: str | None = None
    name: str | None = None
    pattern: str | None = None  # a regular expression of the whole name
    label: str | None = None  # `key`, `key=value` or `prefix/*`
    annotation: str | None = None
    never_acquired: bool = False  # acquireTime is unset
    holder_extends_name: bool = False  # the holder starts with the name and `_`

    @property
    def sign(self) -> str:
        """The conditions in words."""
        signs = {
            "namespace": self.namespace,
            "name": self.name or self.pattern,
            "label": self.label,
            "annotation": self.annotation,
        }
        return ", ".join(f"{word} {value}" for word, value in signs.items() if value)


_TERRAFORM = "Terraform's state lock: hashicorp/terraform backend/remote-state/kubernetes"
_API_SERVER = "an API server announces itself: kubernetes/kubernetes pkg/controlplane/apiserver"
_KONNECTIVITY = "agents count proxy servers: kubernetes-sigs/apiserver-network-proxy"

KNOWN_WRITERS = (
    KnownWriter("lock", _TERRAFORM, label="tfstate=true"),
    KnownWriter("lock", _TERRAFORM, annotation="app.terraform.io/lock-info"),
    KnownWriter("lock", _TERRAFORM, name="lock-tfstate-*"),
    KnownWriter(
        "lock",
        "medik8s keeps remediators off a node: medik8s/common pkg/lease",
        namespace="medik8s-leases",
    ),
    KnownWriter(
        "lock",
        "a reboot slot of a group: poseidon/fleetlock lease.go",
        name="fleetlock-*",
        never_acquired=True,
    ),
    KnownWriter(
        "lock",
        "one node drains at a time: k8snetworkplumbingwg/sriov-network-operator pkg/daemon",
        name="config-daemon-draining-lock",
    ),
    KnownWriter(
        "lock",
        "guards one address allocation: k8snetworkplumbingwg/whereabouts pkg/storage",
        name="whereabouts",
    ),
    KnownWriter("identity", _API_SERVER, label="apiserver.kubernetes.io/identity"),
    KnownWriter(
        "identity",
        "an API server before 1.27 announces itself: kubernetes/kubernetes pkg/controlplane",
        label="k8s.io/component=kube-apiserver",
    ),
    KnownWriter(
        "identity", _API_SERVER, pattern="(kube-)?apiserver-[a-z0-9]{26}", holder_extends_name=True
    ),
    KnownWriter("identity", _KONNECTIVITY, label="k8s-app=konnectivity-server"),
    KnownWriter("identity", _KONNECTIVITY, name="konnectivity-proxy-server-*"),
    KnownWriter(
        "identity",
        "k0s counts its controllers: k0sproject/k0s pkg/component/controller",
        namespace="kube-node-lease",
        name="k0s-ctrl-*",
    ),
    KnownWriter(
        "election",
        "k0s controllers elect one: k0sproject/k0s pkg/component/controller",
        namespace="kube-node-lease",
        name="k0s-endpoint-reconciler",
    ),
    KnownWriter(
        "election",
        "one policy controller writes status: linkerd/linkerd2 policy-controller",
        name="policy-controller-write",
    ),
    KnownWriter(
        "heartbeat",
        "an agent proves its cluster lives: open-cluster-management-io/ocm pkg/registration",
        name="managed-cluster-lease",
    ),
    KnownWriter(
        "heartbeat",
        "an extension proves it runs: gardener/gardener extensions/pkg/controller/heartbeat",
        name="gardener-extension-heartbeat",
    ),
    KnownWriter(
        "heartbeat",
        "gardenlet proves its seed lives: gardener/gardener pkg/gardenlet/controller/lease",
        namespace="gardener-system-seed-lease",
    ),
    KnownWriter(
        "heartbeat",
        "an agent proves its cluster lives: karmada-io/karmada pkg/controllers/status",
        namespace="karmada-cluster",
    ),
    KnownWriter(
        "heartbeat",
        "the webhook watchdog stamps it: kyverno/kyverno pkg/controllers/webhook",
        annotation="kyverno.io/last-request-time",
    ),
    KnownWriter(
        "heartbeat",
        "a shard proves it lives: timebertt/kubernetes-controller-sharding pkg/shard/lease",
        label="alpha.sharding.timebertt.dev/*",
    ),
)

# The writer updates these regularly: they are a sign of life, not a reconfiguration.
HEARTBEAT_ANNOTATIONS = frozenset({"kyverno.io/last-request-time"})


def _place(writer: KnownWriter) -> str:
    """Return a regular expression for the `namespace/name` of its Leases."""
    namespace, name = (
        re.escape(word or "*").replace(r"\*", ".*") for word in (writer.namespace, writer.name)
    )
    return f"{namespace}/{writer.pattern or name}"


# One fast check for nearly all Leases, kubelets', which no entry can match.
_known_place = re.compile(
    "|".join(_place(w) for w in KNOWN_WRITERS if w.label is None and w.annotation is None)
).fullmatch


def known_writer(lease: Lease) -> KnownWriter | None:
    """Return the first entry that matches this Lease."""
    meta = lease.metadata
    unmarked = not meta.labels and not meta.annotations
    if unmarked and not _known_place(f"{meta.namespace}/{meta.name}"):
        return None
    return next((writer for writer in KNOWN_WRITERS if _wrote(writer, lease)), None)


def _wrote(writer: KnownWriter, lease: Lease) -> bool:
    meta, spec = lease.metadata, lease.spec
    return (
        (writer.label is None or _bears(writer.label, meta.labels))
        and (writer.annotation is None or _bears(writer.annotation, meta.annotations))
        and (writer.namespace is None or _matches(writer.namespace, meta.namespace))
        and (writer.name is None or _matches(writer.name, meta.name))
        and (writer.pattern is None or bool(re.fullmatch(writer.pattern, meta.name)))
        and (not writer.never_acquired or spec.acquire_time is None)
        and (
            not writer.holder_extends_name
            or (spec.holder_identity or "").startswith(f"{meta.name}_")
        )
    )


def _matches(wanted: str, word: str) -> bool:
    return word.startswith(wanted[:-1]) if wanted.endswith("*") else word == wanted


def _bears(wanted: str, signs: dict[str, str] | None) -> bool:
    if not signs:
        return False
    key, equals, value = wanted.partition("=")
    if equals:
        return signs.get(key) == value
    return any(_matches(key, sign) for sign in signs)
