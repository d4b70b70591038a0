"""Names for the demo, as found in real clusters."""

import zlib
from random import Random
from uuid import UUID

import msgspec

NODES = tuple(f"worker-{number:02d}.eu-central" for number in range(1, 61))
_POD_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # the letters of k8s.io/apimachinery/pkg/util/rand


class ElectionName(msgspec.Struct, frozen=True, kw_only=True):
    """One election and the names of its contenders.

    `identity` is a pattern: {host} a control plane machine, {pod} the end of a pod's name, {uuid} a
    new one per process. Without {uuid} a process returns under its old name.
    """

    namespace: str
    name: str
    identity: str
    contenders: int = 2
    # Its library begins a new term when it finds itself named at its start
    fresh_start: bool = False

    @property
    def program(self) -> str:
        """The name of the program, which is that of its Deployment or StatefulSet."""
        return (self.identity.partition("{")[0] or self.name).rstrip("-0")

    @property
    def controller(self) -> str:
        """The kind of object that owns the Pods."""
        if "{host}" in self.identity:
            return "Node"  # static Pods
        return "ReplicaSet" if "{pod}" in self.identity else "StatefulSet"

    def new_identity(self, index: int, pod: str, random: Random) -> str:
        """Return a new identity for the contender of this index in the Pod of this ending."""
        return self.identity.format(
            host=host_of(index), index=index, pod=pod, uuid=new_uuid(random)
        )

    def node_of(self, index: int) -> str:
        """Return the machine that runs the contender of this index."""
        if self.controller == "Node":
            return host_of(index)
        return NODES[zlib.crc32(f"{self.name}/{index}".encode()) % len(NODES)]


def host_of(index: int) -> str:
    """Return a machine of the control plane."""
    return f"control-plane-{index + 1}"


CONTROL_PLANE = tuple(map(host_of, range(3)))
ELECTIONS = (
    ElectionName(
        namespace="kube-system", name="kube-scheduler", identity="{host}_{uuid}", contenders=3
    ),
    ElectionName(
        namespace="kube-system",
        name="kube-controller-manager",
        identity="{host}_{uuid}",
        contenders=3,
    ),
    ElectionName(
        namespace="kube-system",
        name="cert-manager-controller",
        identity="cert-manager-{pod}-external-cert-manager-controller",
    ),
    ElectionName(
        namespace="kube-system",
        name="cert-manager-cainjector-leader-election",
        identity="cert-manager-cainjector-{pod}_{uuid}",
    ),
    ElectionName(
        namespace="ingress-nginx",
        name="ingress-nginx-leader",
        identity="ingress-nginx-controller-{pod}",
    ),
    ElectionName(
        namespace="external-secrets",
        name="external-secrets-controller",
        identity="external-secrets-{pod}_{uuid}",
    ),
    ElectionName(namespace="keda", name="operator.keda.sh", identity="keda-operator-{pod}_{uuid}"),
    ElectionName(
        namespace="flux-system",
        name="kustomize-controller-leader-election",
        identity="kustomize-controller-{pod}_{uuid}",
        contenders=1,
    ),
    ElectionName(
        namespace="argo-rollouts",
        name="argo-rollouts-controller-lock",
        identity="argo-rollouts-{pod}_{uuid}",
    ),
    ElectionName(
        namespace="longhorn-system",
        name="driver-longhorn-io",
        identity="csi-provisioner-{pod}",
        contenders=3,
    ),
    ElectionName(
        namespace="monitoring",
        name="thanos-operator-leader",
        identity="thanos-operator-{index}",
        contenders=2,
    ),
    ElectionName(
        namespace="backup",
        name="backup-operator",
        identity="backup-operator-0",
        contenders=1,
        fresh_start=True,
    ),
)
# Only where the API serves LeaseCandidates.
COORDINATED = ElectionName(
    namespace="kube-system", name="cloud-controller-manager", identity="{host}", contenders=3
)
LOCKS = ("lock-tfstate-default-production", "lock-tfstate-default-staging")
LOCK_NAMESPACE = "terraform"
NODE_NAMESPACE = "kube-node-lease"
IDENTITY_NAMESPACE = "kube-system"
API_SERVERS = 3

NAMESPACES = tuple(sorted({one.namespace for one in ELECTIONS} | {LOCK_NAMESPACE, NODE_NAMESPACE}))


def letters(random: Random, count: int) -> str:
    """Return a pod's suffix."""
    return "".join(random.choices(_POD_LETTERS, k=count))


def new_uuid(random: Random) -> str:
    """Return a UUID from the seeded generator, so that the demo repeats exactly."""
    return str(UUID(int=random.getrandbits(128), version=4))


def api_server_names(random: Random) -> tuple[str, ...]:
    """Return names of API server identities: 26 characters of a hash of the machine's name."""
    alphabet = "abcdefghijklmnopqrstuvwxyz234567"
    return tuple(f"apiserver-{''.join(random.choices(alphabet, k=26))}" for _ in range(API_SERVERS))
