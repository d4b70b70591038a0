"""What a Lease is for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from leases.domain.kind import Kind, classify
from leases.domain.known_writers import KNOWN_WRITERS
from leases.domain.lease import Lease
from tests.support.values.leases import lease

UUID = "9ca3a9c7-610d-4b47-91bb-2d916d1307ed"
CONFORMANCE = Path(__file__).parents[1] / "conformance"
REAL = [
    real
    for name in ("real-leases.json", "real-leases-2.json")
    for real in json.loads((CONFORMANCE / name).read_text())
    if not real.get("undecidable")
]
# What its writer means cannot be seen: it counts transitions and renews, but nobody contends.
NOT_SEEN = "pvc-e2a88db5-4baa-4526-8363-2cd9cd9da09c"


def test_real_leases_have_the_kinds_recorded_by_hand() -> None:
    wrong = set()
    for real in REAL:
        subject = msgspec.convert({"metadata": real["metadata"], "spec": real["spec"]}, Lease)
        if classify(subject, None)[0].value != real["truth"]["kind"]:
            wrong.add(subject.metadata.name)
    assert wrong == {NOT_SEEN}


def bare(**given: Any) -> Lease:
    """A Lease with nothing set but what is given."""
    unset: dict[str, Any] = dict.fromkeys(("renewed", "acquired", "duration", "transitions"))
    return lease(**{"holder": None, **unset, **given})


@pytest.mark.parametrize(
    ("subject", "kind", "reason"),
    [
        (lease(strategy="OldestEmulationVersion", name="whereabouts"), Kind.ELECTION, "strategy"),
        (lease(labels={"tfstate": "true"}), Kind.LOCK, "Terraform"),
        (bare(labels={"tfstate": "false"}), Kind.UNKNOWN, "nothing"),
        (bare(annotations={"app.terraform.io/lock-info": ""}), Kind.LOCK, "Terraform"),
        (bare(name="lock-tfstate-default-x"), Kind.LOCK, "lock-tfstate-*"),
        (lease(namespace="medik8s-leases"), Kind.LOCK, "medik8s"),
        (lease(name="fleetlock-a", acquired=None), Kind.LOCK, "reboot"),
        (lease(name="fleetlock-a"), Kind.ELECTION, "leaseTransitions"),
        (lease(name="config-daemon-draining-lock"), Kind.LOCK, "drains"),
        (lease(name="whereabouts"), Kind.LOCK, "allocation"),
        (lease(labels={"apiserver.kubernetes.io/identity": "x"}), Kind.IDENTITY, "API server"),
        (lease(labels={"k8s.io/component": "kube-apiserver"}), Kind.IDENTITY, "API server"),
        (
            bare(name=f"apiserver-{'a1' * 13}", holder=f"apiserver-{'a1' * 13}_{UUID}", renewed=0),
            Kind.IDENTITY,
            "API server",
        ),
        (
            bare(name=f"apiserver-{'a1' * 13}", holder="x", renewed=0, duration=5),
            Kind.UNKNOWN,
            "nothing",
        ),
        (bare(labels={"k8s-app": "konnectivity-server"}), Kind.IDENTITY, "proxy servers"),
        (bare(name="konnectivity-proxy-server-1"), Kind.IDENTITY, "proxy servers"),
        (lease(namespace="kube-node-lease", name="k0s-ctrl-0"), Kind.IDENTITY, "k0s"),
        (lease(name="k0s-ctrl-0"), Kind.ELECTION, "leaseTransitions"),
        (lease(namespace="kube-node-lease", name="k0s-endpoint-reconciler"), Kind.ELECTION, "k0s"),
        (bare(name="policy-controller-write"), Kind.ELECTION, "linkerd"),
        (lease(name="managed-cluster-lease"), Kind.HEARTBEAT, "agent"),
        (lease(name="gardener-extension-heartbeat"), Kind.HEARTBEAT, "extension"),
        (lease(namespace="gardener-system-seed-lease"), Kind.HEARTBEAT, "seed"),
        (lease(namespace="karmada-cluster"), Kind.HEARTBEAT, "agent"),
        (bare(annotations={"kyverno.io/last-request-time": "x"}), Kind.HEARTBEAT, "watchdog"),
        (lease(labels={"alpha.sharding.timebertt.dev/state": ""}), Kind.HEARTBEAT, "shard"),
        (lease(holder="b", owner=("Node", "n")), Kind.LOCK, "Node n"),
        (lease(holder="n", owner=("Node", "n")), Kind.HEARTBEAT, "Node n"),
        (lease(holder="b", acquired=None, owner=("Node", "n")), Kind.HEARTBEAT, "Node n"),
        (lease(namespace="kube-node-lease", acquired=None), Kind.HEARTBEAT, "kubelets"),
        (lease(namespace="kube-node-lease", transitions=None), Kind.HEARTBEAT, "kubelets"),
        (lease(namespace="kube-node-lease"), Kind.ELECTION, "leaseTransitions"),
        (lease(namespace="kube-node-lease", holder="controller"), Kind.HEARTBEAT, "kubelets"),
        (lease(holder="controller"), Kind.HEARTBEAT, "own name"),
        (bare(holder="o", renewed=0, owner=("Pod", "o")), Kind.HEARTBEAT, "owner"),
        (lease(holder="o", owner=("Pod", "o")), Kind.ELECTION, "leaseTransitions"),
        (bare(holder="a", acquired=0), Kind.LOCK, "given back"),
        (lease(acquired=None), Kind.ELECTION, "leaseTransitions"),
        (bare(holder="a", duration=5, transitions=3), Kind.UNKNOWN, "nothing"),
        (lease(transitions=None), Kind.LOCK, "not renewed since"),
        (lease(transitions=None, renewed=1), Kind.ELECTION, "renewed since"),
        (bare(renewed=0), Kind.HEARTBEAT, "without ever naming"),
        (bare(name=f"x-{UUID}", holder=UUID, renewed=0, duration=5), Kind.IDENTITY, "UUID"),
        (bare(name="agent-n1", holder="n1", renewed=0, duration=5), Kind.HEARTBEAT, "ends in"),
        (bare(name="agent-n1", holder="a/n1", renewed=0, duration=5), Kind.HEARTBEAT, "ends in"),
        (bare(name="agent-n1", holder="other", renewed=0, duration=5), Kind.UNKNOWN, "nothing"),
        (bare(name="agent-n1", holder="other", renewed=0), Kind.HEARTBEAT, "nobody could take"),
        (bare(holder="a", acquired=0, duration=5, transitions=1), Kind.LOCK, "never renewed"),
        (lease(holder="default/controller"), Kind.HEARTBEAT, "own name"),
        (bare(holder="d/o", renewed=0, duration=5, owner=("Pod", "o")), Kind.HEARTBEAT, "owner"),
        (bare(holder="a", duration=30), Kind.UNKNOWN, "nothing"),
    ],
)
def test_the_first_rule_that_fits_decides(subject: Lease, kind: Kind, reason: str) -> None:
    judged, why = classify(subject, None)
    assert judged is kind
    assert reason in why


def test_a_vacant_lease_keeps_the_kind_it_had_while_held() -> None:
    released = lease("", duration=1, transitions=None)
    assert classify(released, Kind.LOCK)[0] is Kind.LOCK
    assert classify(released, None)[0] is Kind.LOCK
    assert classify(bare(), Kind.HEARTBEAT)[0] is Kind.HEARTBEAT


def test_a_new_holder_who_has_not_renewed_makes_an_election_no_lock() -> None:
    assert classify(lease("b", transitions=None), Kind.ELECTION)[0] is Kind.ELECTION


def test_every_known_writer_names_its_source() -> None:
    assert all(": " in writer.source and writer.sign for writer in KNOWN_WRITERS)


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (bare(labels={"tfstate": "false"}), "nothing in it tells what it is for"),
        (lease(name="n", holder="n", owner=("Node", "n")), "owned by the Node of its name"),
        (lease(holder="n", owner=("Node", "n")), "owned by Node n"),
        (lease(holder="controller"), "the holder is the Lease's own name"),
        (
            bare(holder="o", renewed=0, owner=("Pod", "o")),
            "the holder is its owner, and it is never acquired",
        ),
        (
            bare(holder="a", acquired=0),
            "a holder without renewTime and duration: it must be given back",
        ),
        (lease(acquired=None), "leaseTransitions counts its holders"),
        (lease(transitions=None, renewed=1), "a guess: acquired, and renewed since"),
        (lease(transitions=None), "a guess: acquired, and not renewed since"),
        (
            bare(holder="a", acquired=0, duration=5),
            "acquired, but never renewed: an elector always renews",
        ),
        (bare(holder="a", renewed=0), "renewed without a duration: nobody could take it over"),
        (bare(renewed=0), "renewed without ever naming a holder"),
        (
            bare(name=f"x-{UUID}", holder=UUID, renewed=0, duration=5),
            "only renewed, and its name ends in the holder, a UUID",
        ),
        (
            bare(name="agent-n1", holder="n1", renewed=0, duration=5),
            "only renewed, and its name ends in the holder",
        ),
    ],
)
def test_a_rule_gives_its_reason_in_words(subject: Lease, reason: str) -> None:
    assert classify(subject, None)[1] == reason


def test_a_vacant_lease_says_why_it_keeps_its_kind() -> None:
    reason = "vacant: it keeps the kind it had while held"
    assert classify(lease(""), Kind.LOCK) == (Kind.LOCK, reason)


@pytest.mark.parametrize(
    ("subject", "kind"),
    [
        (lease(name="whereabouts-2"), Kind.ELECTION),
        (lease(name="x-lock-tfstate-y"), Kind.ELECTION),
        (bare(name="lock-tfstate"), Kind.UNKNOWN),
        (lease(labels={"alpha.sharding.timebertt.dev": ""}), Kind.ELECTION),
        (lease(labels={"tfstate-2": "true"}), Kind.ELECTION),
        (bare(name=f"apiserver-{'a1' * 13}", holder="XXXX", renewed=0, duration=5), Kind.UNKNOWN),
    ],
)
def test_a_mark_that_resembles_a_known_writers_is_ignored(subject: Lease, kind: Kind) -> None:
    assert classify(subject, None)[0] is kind
