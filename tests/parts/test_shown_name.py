"""A long name keeps its end and what tells it from its siblings; the rest may be cut."""

from __future__ import annotations

import pytest

from dashboard.parts.names import WHOLE_NAME, cut_name, shown_name, told_apart
from leases.domain.lease import ObjectName
from tests.support.board import a_lease, fill

CERT_MANAGER = (
    "cert-manager-cainjector-leader-election",
    "cert-manager-cainjector-leader-election-core",
    "cert-manager-controller",
)
GRID = [
    f"payments-eu-west-{zone}-worker-{number}-leader-election"
    for zone in range(1, 4)
    for number in range(12)
]
LONG = ["x" * 120 + letter + "y" * 132 for letter in "abc"]


def narrow(shown) -> str:
    """The name where nothing more may be cut: a beginning that is cut keeps four letters."""
    cut = [
        f"{text[:4] if place == 0 else ''}…" if may_be_cut else text
        for place, (text, may_be_cut) in enumerate(shown)
    ]
    return "".join(cut)


def listed(board, *names: str) -> None:
    fill(board.clusters["a"].store, *(a_lease(ObjectName("apps", name)) for name in names))


@pytest.mark.parametrize(
    ("name", "siblings", "says"),
    [
        ("kube-scheduler", (), "kube-scheduler"),
        ("kube-controller-manager", ("kube-scheduler",), "kube-con…anager"),
        (CERT_MANAGER[2], CERT_MANAGER[:2], "cert…-controller"),
        (CERT_MANAGER[0], CERT_MANAGER[1:], "cert…-cain…ection"),
        (CERT_MANAGER[1], (CERT_MANAGER[0], CERT_MANAGER[2]), "cert…-cain…ion-core"),
        ("kyverno-background-controller", ("kyverno-cleanup-controller",), "kyve…-bac…roller"),
        ("a-name-that-nobody-else-has-a-part-of", (), "a-na…art-of"),
    ],
)
def test_a_name_is_cut_where_it_says_least(board, name, siblings, says):
    listed(board, name, *siblings)
    shown = shown_name("a", ObjectName("apps", name))
    assert narrow(shown) == says
    assert "".join(text for text, _ in shown) == name


@pytest.mark.parametrize("names", [CERT_MANAGER, GRID, LONG], ids=["real", "grid", "253 letters"])
def test_siblings_differ_however_narrow_their_place(board, names):
    listed(board, *names)
    shown = [narrow(shown_name("a", ObjectName("apps", name))) for name in names]
    assert len(set(shown)) == len(names)
    assert max(map(len, shown)) <= 26


@pytest.mark.parametrize("names", [CERT_MANAGER, GRID, LONG], ids=["real", "grid", "253 letters"])
def test_names_without_a_cluster_differ_as_well(names):
    shown = told_apart([*names, names[0]])
    assert {name: "".join(text for text, _ in one) for name, one in shown.items()} == {
        name: name for name in names
    }
    assert len({narrow(one) for one in shown.values()}) == len(names)
    assert narrow(told_apart(["a-holder-that-stands-alone"])["a-holder-that-stands-alone"]) == (
        "a-ho…-alone"
    )


def test_only_the_same_namespace_has_siblings(board):
    name = "ingress-controller-leader"
    other = a_lease(ObjectName("other", "ingress-controller-leader-2"))
    fill(board.clusters["a"].store, a_lease(ObjectName("apps", name)), other)
    assert shown_name("a", ObjectName("apps", name)) == cut_name(name)


def test_a_node_is_named_without_its_domain(board):
    listed(board, *(f"ip-10-65-41-11{n}-of-pool.eu-central-1.compute" for n in range(3)))
    key = ObjectName("apps", "ip-10-65-41-111-of-pool.eu-central-1.compute")
    shown = shown_name("a", key, ".eu-central-1.compute")
    assert "".join(text for text, _ in shown) == "ip-10-65-41-111-of-pool"
    assert "-111" in narrow(shown)


def test_what_no_process_watches_is_cut_all_the_same():
    key = ObjectName("apps", "x" * (WHOLE_NAME + 1))
    assert narrow(shown_name("nowhere", key)) == "xxxx…xxxxxx"


def test_the_names_around_a_stretch_are_found(board):
    store = board.clusters["a"].store
    assert store.around(ObjectName("apps", "a"), ObjectName("apps", "z")) == []
    listed(board, "a", "b", "c")
    keys = [ObjectName("apps", name) for name in "abc"]
    assert store.around(keys[1], keys[1]) == [keys[0], keys[2]]
    assert store.around(keys[0], keys[1]) == [keys[2]]
    assert store.around(ObjectName("apps", "aa"), ObjectName("apps", "bb")) == [keys[0], keys[2]]
