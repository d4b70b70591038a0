"""Programs whose Leases would be misjudged by their shape, each with its source.

The first entry whose conditions all match decides. `name` and `namespace` are whole words, or end
in `*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from leases.domain.lease import Lease


class KnownWriter(msgspec.Struct, frozen=True, kw_only=True):
    """One writer and how to recognise its Leases."""

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


KNOWN_WRITERS: tuple[KnownWriter, ...] = (
    KnownWriter(
        kind="lock",
        label="tfstate=true",
        source="Terraform's state lock: hashicorp/terraform backend/remote-state/kubernetes",
    ),
    KnownWriter(
        kind="lock",
        annotation="app.terraform.io/lock-info",
        source="Terraform's state lock: hashicorp/terraform backend/remote-state/kubernetes",
    ),
    KnownWriter(
        kind="lock",
        name="lock-tfstate-*",
        source="Terraform's state lock: hashicorp/terraform backend/remote-state/kubernetes",
    ),
    KnownWriter(
        kind="lock",
        namespace="medik8s-leases",
        source="medik8s keeps remediators off a node: medik8s/common pkg/lease",
    ),
    KnownWriter(
        kind="lock",
        name="fleetlock-*",
        never_acquired=True,
        source="a reboot slot of a group: poseidon/fleetlock lease.go",
    ),
    KnownWriter(
        kind="lock",
        name="config-daemon-draining-lock",
        source="one node drains at a time: k8snetworkplumbingwg/sriov-network-operator pkg/daemon",
    ),
    KnownWriter(
        kind="lock",
        name="whereabouts",
        source="guards one address allocation: k8snetworkplumbingwg/whereabouts pkg/storage",
    ),
    KnownWriter(
        kind="identity",
        label="apiserver.kubernetes.io/identity",
        source="an API server announces itself: kubernetes/kubernetes pkg/controlplane/apiserver",
    ),
    KnownWriter(
        kind="identity",
        label="k8s.io/component=kube-apiserver",
        source="an API server before 1.27 announces itself: kubernetes/kubernetes pkg/controlplane",
    ),
    KnownWriter(
        kind="identity",
        pattern="(kube-)?apiserver-[a-z0-9]{26}",
        holder_extends_name=True,
        source="an API server announces itself: kubernetes/kubernetes pkg/controlplane/apiserver",
    ),
    KnownWriter(
        kind="identity",
        label="k8s-app=konnectivity-server",
        source="agents count proxy servers: kubernetes-sigs/apiserver-network-proxy",
    ),
    KnownWriter(
        kind="identity",
        name="konnectivity-proxy-server-*",
        source="agents count proxy servers: kubernetes-sigs/apiserver-network-proxy",
    ),
    KnownWriter(
        kind="identity",
        namespace="kube-node-lease",
        name="k0s-ctrl-*",
        source="k0s counts its controllers: k0sproject/k0s pkg/component/controller",
    ),
    KnownWriter(
        kind="election",
        namespace="kube-node-lease",
        name="k0s-endpoint-reconciler",
        source="k0s controllers elect one: k0sproject/k0s pkg/component/controller",
    ),
    KnownWriter(
        kind="election",
        name="policy-controller-write",
        source="one policy controller writes status: linkerd/linkerd2 policy-controller",
    ),
    KnownWriter(
        kind="heartbeat",
        name="managed-cluster-lease",
        source="an agent proves its cluster lives: open-cluster-management-io/ocm pkg/registration",
    ),
    KnownWriter(
        kind="heartbeat",
        name="gardener-extension-heartbeat",
        source="an extension proves it runs: gardener/gardener extensions/pkg/controller/heartbeat",
    ),
    KnownWriter(
        kind="heartbeat",
        namespace="gardener-system-seed-lease",
        source="gardenlet proves its seed lives: gardener/gardener pkg/gardenlet/controller/lease",
    ),
    KnownWriter(
        kind="heartbeat",
        namespace="karmada-cluster",
        source="an agent proves its cluster lives: karmada-io/karmada pkg/controllers/status",
    ),
    KnownWriter(
        kind="heartbeat",
        annotation="kyverno.io/last-request-time",
        source="the webhook watchdog stamps it: kyverno/kyverno pkg/controllers/webhook",
    ),
    KnownWriter(
        kind="heartbeat",
        label="alpha.sharding.timebertt.dev/*",
        source="a shard proves it lives: timebertt/kubernetes-controller-sharding pkg/shard/lease",
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
    if writer.label is not None and not _bears(writer.label, meta.labels):
        return False
    if writer.annotation is not None and not _bears(writer.annotation, meta.annotations):
        return False
    if writer.namespace is not None and not _matches(writer.namespace, meta.namespace):
        return False
    if writer.name is not None and not _matches(writer.name, meta.name):
        return False
    if writer.pattern is not None and not re.fullmatch(writer.pattern, meta.name):
        return False
    if writer.never_acquired and spec.acquire_time is not None:
        return False
    holder = spec.holder_identity or ""
    return not writer.holder_extends_name or holder.startswith(f"{meta.name}_")


def _matches(wanted: str, word: str) -> bool:
    return word.startswith(wanted[:-1]) if wanted.endswith("*") else word == wanted


def _bears(wanted: str, signs: dict[str, str] | None) -> bool:
    if not signs:
        return False
    key, equals, value = wanted.partition("=")
    if equals:
        return signs.get(key) == value
    return _any_matches(key, signs) if key.endswith("*") else key in signs


def _any_matches(wanted: str, keys: Iterable[str]) -> bool:
    return any(_matches(wanted, key) for key in keys)
