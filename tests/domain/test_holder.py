"""Who a holder identity speaks of."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from leases.domain.holder_identity import KNOWN_WORDS, Holder, split_holder
from leases.domain.kind import owner_node
from leases.domain.lease import Lease

UUID = "9ca3a9c7-610d-4b47-91bb-2d916d1307ed"
CONFORMANCE = Path(__file__).parents[1] / "conformance"
REAL = [
    real
    for name in ("real-leases.json", "real-leases-2.json")
    for real in json.loads((CONFORMANCE / name).read_text())
]
# No rule finds these two without splitting node names that end in the same way.
NOT_SEEN = {
    "backup1-a96b4d1c-c0ea-424a-b13c-2e1f351c6e61",
    "cluster1-worker-submariner-gateway",
}


@pytest.mark.parametrize(
    ("identity", "host", "suffix"),
    [
        (None, None, None),
        ("", None, None),
        (UUID, None, None),
        ("c988d2509fdf5cdcbed39037c56406fb", None, None),
        ("9ec2b221890e5ed6f4cc70377bfe809fef5be541a2774dc5de81db7acb2786f1", None, None),
        ("138", None, None),
        ("1711798320015-382-efs-csi-aws-com", None, None),
        ("171179832001-382-efs-csi-aws-com", "171179832001-382-efs-csi-aws-com", None),
        ("pod|7|leader", "pod|7", "leader"),
        (f"master_{UUID}", "master", UUID),
        ("gke-0c02-vm_5985f", "gke-0c02-vm", "5985f"),
        ("node_ab", "node_ab", None),
        ("node_nothex", "node_nothex", None),
        ("my_host_abc", "my_host", "abc"),
        (f"apiserver-x_{'0' * 33}", f"apiserver-x_{'0' * 33}", None),
        ("worker-node2-tPDVulKoRK", "worker-node2", "tPDVulKoRK"),
        ("controller-6cdfc667d6", "controller-6cdfc667d6", None),
        ("kube-system/pod-1", "pod-1", None),
        ("a/b/c", "a/b/c", None),
        ("node-1", "node-1", None),
        (f"jenkins-1/{UUID}", "jenkins-1", UUID),
        (f"default/jenkins-1#{UUID}", "jenkins-1", UUID),
        (f"restore:{UUID}", "restore", UUID),
        (f"node-1-{UUID}", f"node-1-{UUID}", None),
        ("worker_10.0.0.7", "worker", "10.0.0.7"),
        ("api-7c5ddbdf54-x7v2p-blue", "api-7c5ddbdf54-x7v2p", "blue"),
        ("eu/api-7c5ddbdf54-x7v2p/db/0", "api-7c5ddbdf54-x7v2p", "db/0"),
        (f"eu/api-7c5ddbdf54-x7v2p/db/{UUID}", "api-7c5ddbdf54-x7v2p", UUID),
        ("api-7c5ddbdf54-x7v2p", "api-7c5ddbdf54-x7v2p", None),
        ("api-7c5ddbdf54-x7v2pq", "api-7c5ddbdf54-x7v2pq", None),
        ("elastic-agent-leader-elastic-agent-x7v2p", "elastic-agent-x7v2p", None),
        (f"elastic-agent-leader-{UUID}", None, None),
        ("elastic-agent-leader-", "elastic-agent-leader-", None),
        ("beats-leader-worker-1.example", "worker-1.example", None),
        (f"beats-leader-{UUID}", None, None),
    ],
)
def test_an_identity_splits_by_the_first_rule_that_fits(
    identity: str | None, host: str | None, suffix: str | None
) -> None:
    assert split_holder(identity) == Holder(host, suffix)


def test_real_holders_split_as_recorded_by_hand() -> None:
    wrong = set()
    for real in REAL:
        truth, identity = real["truth"], real["spec"].get("holderIdentity")
        subject = msgspec.convert({"metadata": real["metadata"], "spec": real["spec"]}, Lease)
        right = Holder(truth["host"], truth["suffix"])
        if split_holder(identity, owner_node(subject)) != right:
            wrong.add(identity)
    assert wrong == NOT_SEEN


def test_the_node_that_owns_a_lease_is_the_host_of_a_holder_that_ends_in_its_name() -> None:
    assert split_holder("agent-node-1", "node-1") == Holder("node-1", None)
    assert split_holder("agentnode-1", "node-1") == Holder("agentnode-1", None)


def test_every_known_form_names_its_source() -> None:
    assert all(": " in source and word.endswith("-") for word, source in KNOWN_WORDS.items())
