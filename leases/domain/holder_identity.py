"""Split a holder identity into the host (a pod or a node) and the suffix of the process.

Never match holders by prefix: `node-1` is not `node-10`.
"""

import re

import msgspec

# Programs that write a fixed word before the host, and who says so.
KNOWN_WORDS = {
    "elastic-agent-leader-": "Elastic Agent, before its pod or agent id: elastic/elastic-agent "
    "internal/pkg/composable/providers/kubernetesleaderelection",
    "beats-leader-": "Metricbeat and the other Beats, before their node or a UUID: elastic/beats "
    "libbeat/autodiscover/providers/kubernetes",
}
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
is_uuid = re.compile(_UUID).fullmatch
# A bare UUID, a digest, a process id, or external-provisioner's `<milliseconds>-<random>-<driver>`.
_names_no_host = re.compile(
    rf"{_UUID}|[0-9a-fA-F]{{32}}|[0-9a-fA-F]{{64}}|[0-9]+|[0-9]{{13}}-[0-9]+-.+", re.DOTALL
).fullmatch
_IPV4 = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_is_suffix = re.compile(rf"{_UUID}|[0-9a-fA-F]{{3,32}}|{_IPV4}").fullmatch
_with_uuid = re.compile(rf"(.+)[/:#]({_UUID})", re.DOTALL).fullmatch
# cilium-operator: the node's name, a dash and ten random letters and digits.
_with_random = re.compile(r"(.+)-((?=[^-]*[A-Z])[A-Za-z0-9]{10})", re.DOTALL).fullmatch
_namespace_and_pod = re.compile(r"[^/]+/([^/]+)").fullmatch
# Kubernetes ends a pod's name with the hash of its ReplicaSet and five more letters, both of the
# alphabet of SafeEncodeString (k8s.io/apimachinery/pkg/util/rand).
_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
_pod_and_words = re.compile(
    rf"(?:.*/)?([^/]+?-{_SAFE}{{8,10}}-{_SAFE}{{5}})[^a-zA-Z0-9]+(.+)", re.DOTALL
).fullmatch


class Holder(msgspec.Struct, frozen=True, gc=False):
    """The two parts of an identity; None if it has none."""

    host: str | None
    suffix: str | None


_NOBODY = Holder(None, None)


def split_holder(identity: str | None, node: str | None = None) -> Holder:
    """Return host and suffix, by the first rule that matches. `node` is the Node that owns the
    Lease: some programs put a word of their own before its name.
    """
    identity = identity or ""
    for word in KNOWN_WORDS:
        identity = identity.removeprefix(word) or identity
    if not identity or _names_no_host(identity):
        return _NOBODY
    if "|" in identity:
        host, _, suffix = identity.rpartition("|")
        return Holder(host or None, suffix or None)
    if match := _with_uuid(identity):
        return Holder(split_holder(match[1], node).host, match[2])
    host, underscore, suffix = identity.rpartition("_")
    if underscore and _is_suffix(suffix):  # node and pod names cannot contain an underscore
        return Holder(host or None, suffix)
    if match := _with_random(identity):
        return Holder(match[1], match[2])
    if match := _namespace_and_pod(identity):
        return Holder(match[1], None)
    if match := _pod_and_words(identity):
        return Holder(match[1], match[2])
    return Holder(node if node and identity.endswith(f"-{node}") else identity, None)


def pod_of(identity: str) -> str:
    """The pod of an identity `namespace/pod`; any other identity as it is."""
    match = _namespace_and_pod(identity)
    return match[1] if match else identity
