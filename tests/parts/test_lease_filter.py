"""Which Leases a URL selects, in which order, and how a bad one is refused."""

from __future__ import annotations

import msgspec
import pytest
from django.http import QueryDict

from dashboard.lists.url_parameters import BadFilter
from dashboard.parts import lease_filter
from dashboard.parts.lease_filter import LeaseFilter, find, wants
from leases.domain.kind import Kind
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import Phase
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked
from tests.support.values.tracked_leases import NOW, tracked

PROCESS = "cp-2_8c2e41f0-5b1d-4f0e-9a57-2d9a3c1b7e44"
BUSY = {ObjectName("kube-node-lease", "node"): 5, ObjectName("apps", "b"): 7}


def with_labels(one: Tracked, **labels: str) -> Tracked:
    meta = msgspec.structs.replace(one.lease.metadata, labels=labels)
    return one.replace(lease=Lease(meta, one.lease.spec))


LEASES = sorted(
    [
        with_labels(tracked("a", namespace="apps", held=50, age=3, transitions=9), app="web"),
        tracked("b", namespace="apps", phase=Phase.LATE, held=10, age=9, holder=PROCESS),
        tracked("c", namespace="kube-system", phase=Phase.EXPIRED, held=99, age=60),
        tracked("d", namespace="kube-system", phase=Phase.VACANT, holder=None, kind=Kind.LOCK),
        tracked("node", namespace="kube-node-lease", kind=Kind.HEARTBEAT, holder="Node", age=1),
    ],
    key=lambda lease: lease.key,
)


def asked(query: str, *flapping: str):
    store = Store("c")
    store.restore(LEASES, NOW)
    keys = [lease.key for name in flapping for lease in LEASES if lease.key.name == name]
    return find(store, LeaseFilter.read(QueryDict(query)), flapping=keys, busy=lambda: BUSY)


def names(query: str, *flapping: str) -> list[str]:
    return [lease.lease.metadata.name for lease in asked(query, *flapping).page]


def test_without_a_filter_all_come_worst_first():
    assert names("") == ["c", "d", "b", "a", "node"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("phase=expired", ["c"]),
        ("phase=expired&phase=late", ["c", "b"]),
        ("kind=heartbeat", ["node"]),
        ("namespace=apps", ["b", "a"]),
        ("namespace=app", []),
        ("namespace=kube-system,apps", ["c", "d", "b", "a"]),
        ("namespace=apps&namespace=kube-system&sort=namespace", ["a", "b", "c", "d"]),
        ("namespace=kube-system,+apps&kind=lock", ["d"]),
        ("q=CP-2", ["b"]),
        ("q=kube-system/", ["c", "d"]),
        ("q=nobody", []),
        ("kind=lock&phase=held", []),
        ("holder=cp-1", ["c", "a"]),
        ("holder=cp", []),
        ("holder=cp-2", ["b"]),
        (f"holder={PROCESS}", ["b"]),
        ("labels=app%3Dweb", ["a"]),
        ("labels=app in (web, db),!tier", ["a"]),
        ("labels=app!%3Dweb&namespace=apps", ["b"]),
        ("labels=tier", []),
        ("q=cp-1&kind=election&phase=held", ["a"]),
    ],
)
def test_filters_narrow_the_list(query, expected):
    assert names(query) == expected


@pytest.mark.parametrize(
    ("column", "ascending"),
    [
        ("namespace", ["a", "b", "node", "c", "d"]),
        ("name", ["a", "b", "c", "d", "node"]),
        ("kind", ["a", "b", "c", "node", "d"]),
        ("holder", ["d", "node", "a", "c", "b"]),
        ("held", ["d", "b", "a", "c", "node"]),
        ("changes", ["b", "node", "a", "c", "d"]),
        ("renewed", ["node", "d", "a", "b", "c"]),
    ],
)
def test_every_column_sorts(column, ascending):
    assert names(f"sort={column}") == ascending


@pytest.mark.parametrize(
    ("flapping", "expected"),
    [
        (["a"], ["c", "a", "d", "b", "node"]),
        (["node", "a"], ["c", "node", "a", "d", "b"]),  # in their own order
        (["c", "b"], ["c", "b", "d", "a", "node"]),  # an expired one is worse than flapping
        (["gone"], ["c", "d", "b", "a", "node"]),
    ],
)
def test_what_flaps_stands_above_all_but_the_expired(flapping, expected):
    assert names("", *flapping) == expected
    assert names("limit=2", *flapping) == expected[:2]
    assert names("limit=2&page=2", *flapping) == expected[2:4]
    assert names("sort=name", *flapping) == ["a", "b", "c", "d", "node"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("flapping=true", ["a", "c"]),
        ("flapping=true&sort=-name", ["c", "a"]),
        ("flapping=true&phase=late", ["a", "c", "b"]),
        ("flapping=true&phase=late&sort=name", ["a", "b", "c"]),
        ("flapping=true&phase=expired&phase=vacant&phase=late", ["c", "a", "d", "b"]),
        ("flapping=true&namespace=kube-system", ["c"]),
        ("flapping=true&labels=app%3Dweb", ["a"]),
        ("flapping=true&kind=lock", []),
        ("phase=held", ["a", "node"]),
    ],
)
def test_flapping_is_one_more_choice_beside_the_phases(query, expected):
    found = asked(query, "a", "c")
    assert [lease.key.name for lease in found.page] == expected
    assert found.total == len(expected)


def test_flapping_leases_are_counted_before_the_filter_by_kind_and_phase():
    assert asked("phase=late&kind=lock", "a", "node").flapping == {
        Kind.ELECTION: {Phase.HELD: 1},
        Kind.HEARTBEAT: {Phase.HELD: 1},
    }
    assert asked("q=node", "a", "node").flapping == {Kind.HEARTBEAT: {Phase.HELD: 1}}


def test_a_minus_turns_the_order():
    assert names("sort=-state") == ["a", "node", "b", "d", "c"]
    assert names("sort=-state", "a") == ["node", "b", "d", "a", "c"]
    assert names("sort=-transitions")[0] == "a"
    assert names("sort=-namespace") == ["d", "c", "node", "b", "a"]


@pytest.mark.parametrize("turned", ["", "-"])
@pytest.mark.parametrize("column", ["name", "kind", "holder", "held", "renewed", "transitions"])
def test_deep_pages_have_the_order_of_the_first(column, turned, monkeypatch):
    order = names(f"sort={turned}{column}")
    monkeypatch.setattr(lease_filter, "SORTED_WHOLE", 0)
    monkeypatch.setattr(lease_filter, "RUN", 2)
    assert names(f"sort={turned}{column}") == order


def test_pages_follow_each_other_and_the_last_one_stays():
    assert names("limit=2&page=1") == ["c", "d"]
    assert names("limit=2&page=3") == ["node"]
    assert asked("limit=2&page=99").number == 3


def test_counts_are_of_what_the_text_and_the_namespace_leave():
    assert asked("phase=held").counts[Kind.ELECTION][Phase.EXPIRED] == 1
    assert Phase.EXPIRED not in asked("namespace=apps&phase=held").counts[Kind.ELECTION]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "phase=late",
        "flapping=true",
        "flapping=true&phase=late",
        "kind=lock",
        "q=cp",
        "namespace=apps",
        "holder=cp-2",
        "labels=app%3Dweb",
    ],
)
def test_one_lease_is_wanted_exactly_if_the_list_has_it(query):
    wanted = wants(LeaseFilter.read(QueryDict(query)), lambda lease: lease.key.name == "a")
    found = {x.key for x in asked(query, "a").page}
    assert {lease.key for lease in LEASES if wanted(lease)} == found


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("phase=heldd", "phase cannot be 'heldd': use one of held, late, expired"),
        ("kind=leader", "kind cannot be 'leader': use one of election, heartbeat"),
        ("sort=age", "sort cannot be 'age': use one of state, namespace"),
        ("labels=a b", "labels cannot be 'a b': unable to parse requirement: "),
        ("flapping=yes", "flapping cannot be 'yes': write true, or leave it out."),
        ("range=2h", "range cannot be '2h': use one of 24h, 6h, 1h, 30m."),
        ("page=0", "page cannot be '0': use a whole number from 1"),
        ("page=x", "page cannot be 'x'"),
        ("limit=5000", "limit cannot be '5000': use a whole number from 1 to 1,000."),
    ],
)
def test_a_bad_filter_is_answered_with_the_right_form(query, sentence):
    with pytest.raises(BadFilter) as refused:
        LeaseFilter.read(QueryDict(query))
    assert str(refused.value).startswith(sentence)
