"""Who a holder identity speaks of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leases.domain.holder_identity import KNOWN_WORDS, Holder, split_holder

UUID = "9ca3a9c7-610d-4b47-91bb-2d916d1307ed"
REAL = json.loads((Path(__file__).parents[1] / "conformance" / "real-leases.json").read_text())


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


@pytest.mark.parametrize("real", REAL, ids=lambda entry: entry["metadata"]["name"])
def test_real_holders_split_as_those_who_know_them_say(real: dict[str, Any]) -> None:
    truth = real["truth"]
    split = split_holder(real["spec"].get("holderIdentity"))
    assert split == Holder(truth["host"], truth["suffix"])


def test_every_known_form_names_its_source() -> None:
    assert all(": " in source and word.endswith("-") for word, source in KNOWN_WORDS.items())
