"""Who holds what, and what goes down with it, as a browser and a program get it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from dashboard.charts.lanes import spells
from dashboard.charts.time_axis import Scale
from dashboard.pages.holders import list as holders_page
from dashboard.pages.holders.list import CHIPS
from dashboard.parts.holdings import Holdings, holdings_of
from leases.domain.cause.facts import PodFact
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import Lease, LeaseSpec, ObjectMeta, ObjectName, OwnerReference
from leases.domain.watched_times import Connection, ConnectionState
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.holder_pods import Reading, pod_questions
from leases.models import WatchSpan
from tests.support.board import a_lease, fill, member
from tests.support.scripted_api import ScriptedServer, answer, status
from tests.support.values import incident_rows
from tests.support.values.change_rows import to_row
from tests.support.values.incidents import open_incident
from tests.support.values.tracked_leases import NOW

POD = "keda-operator-5c9f8b7d4-8tr2m"
HTMX = {"HX-Request": "true"}


def node(name: str, *, ago: float = 1.0) -> Lease:
    """A kubelet's heartbeat."""
    now = datetime.now(UTC)
    seen = now - timedelta(seconds=ago)
    return Lease(
        ObjectMeta(
            name=name, namespace="kube-node-lease", uid=f"uid-{name}", resource_version="1",
            creation_timestamp=now - timedelta(days=1),
            owner_references=(OwnerReference("Node", name),),
        ),
        LeaseSpec(holder_identity=name, lease_duration_seconds=40, renew_time=seen),
    )  # fmt: skip


def held(name: str, holder: str | None, *, namespace: str = "kube-system", ago: float = 0) -> Lease:
    now = datetime.now(UTC) - timedelta(seconds=ago)
    return a_lease(ObjectName(namespace, name), holder=holder, now=now)


@pytest.fixture
def store(board):
    """Cluster a: cp-1 holds three under two identities, a pod one; cp-2 is a dead node."""
    store = board.clusters["a"].store
    fill(
        store,
        held("scheduler", "cp-1_8c2e41f0-5b1d-4f0e-9a57-2d9a3c1b7e44"),
        held("controller-manager", "cp-1_a4c123b1-612d-4d27-92d1-371c17149d43"),
        held("operator", POD, namespace="keda"),
        held("cloud", "cp-2"),
        held("gone", "cp-3", ago=60),
        held("free", None),
        node("cp-1"),
        node("cp-2", ago=100),
        node("worker-1"),
        node("worker-2"),
    )
    store.connection = Connection(state=ConnectionState.LIVE, since=datetime.now(UTC))
    return store


def watched() -> None:
    now = datetime.now(UTC)
    WatchSpan.objects.create(
        cluster="a", process="p", since=now - timedelta(days=31), until=now + timedelta(minutes=1)
    )


def remember(change: ChangeType, *, minutes_ago: float, **more) -> None:
    at = datetime.now(UTC) - timedelta(minutes=minutes_ago)
    known = {
        "cluster": "a", "namespace": "kube-system", "name": "scheduler", "uid": "u",
        "kind": Kind.ELECTION, "at": at, "observed_at": at, "resource_version": str(minutes_ago),
    }  # fmt: skip
    to_row(Change(change=change, **(known | more))).save()


def text_of(response) -> str:
    text = re.sub(r"<(svg|title).*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def holders(response) -> list[str]:
    return re.findall(r'data-holder="([^"]+)"', response.content.decode())


def items(client, query: str = "") -> dict[str, dict[str, object]]:
    answer = client.get(f"/c/a/holders/?format=json{query}").json()
    return {item["holder"]: item for item in answer["items"]}


def test_hosts_come_with_what_goes_down_with_them_most_first(store, operator):
    response = operator.get("/c/a/holders/")
    assert holders(response) == ["cp-1", "cp-2", POD, "cp-3"]
    shown = text_of(response)
    assert "2 Leases , 50 %" in shown
    assert "2 of 4 held Leases, 50\xa0%" in response.content.decode()
    assert "2 identities" in shown
    assert re.search(r"controller-manager\s+scheduler", shown)


def test_a_node_says_how_its_heartbeat_stands(store, operator):
    shown = text_of(operator.get("/c/a/holders/"))
    assert "node, heartbeat in time" in shown
    assert "node, heartbeat expired for 1 m" in shown
    assert "still named by 1 expired Lease" in shown
    assert re.search(r"Held by a dead node\s+1\s", shown)


def pods_run(board, **nodes: str) -> None:
    """Read, for the Leases of these names, where their Pods run."""
    store, pods = board.clusters["a"].store, board.clusters["a"].pods
    for name, where in nodes.items():
        (one,) = (one for one in store.snapshot() if one.key.name == name)
        for question in pod_questions(one.key, one.holder):
            fact = PodFact(key=question.key, read_at=datetime.now(UTC), node=where)
            pods.learn([fact])
            pods._readings[question] = (0.0, Reading(fact.read_at, (fact,)))
            pods.reads += 1


def test_what_the_pods_of_a_node_hold_goes_down_with_it(store, board, operator):
    shown = text_of(operator.get("/c/a/holders/"))
    assert shown.count("by name; what its Pods hold is not known") == 2
    assert "by the node&#x27;s name; Pods are not read" in shown
    seen = re.compile(r"Holders now\s+\d+\s+of \d+ seen in 24 h")
    (before,) = seen.findall(shown)
    pods_run(board, operator="cp-2", gone="worker-1")
    found = items(operator)
    assert found["cp-2"]["takes_down"] == 2
    assert [held["name"] for held in found["cp-2"]["holds"]] == ["cloud"]
    (by_pod,) = found["cp-2"]["pods_hold"]
    assert (by_pod["namespace"], by_pod["name"], by_pod["holder"]) == ("keda", "operator", POD)
    # What it last held is listed; and a node that holds nothing by its own name.
    assert (found["worker-1"]["takes_down"], found["worker-1"]["pods_hold"]) == (0, [])
    assert [held["name"] for held in found["worker-1"]["last_held"]] == ["gone"]
    response = operator.get("/c/a/holders/")
    assert holders(response) == ["cp-1", "cp-2", POD, "cp-3", "worker-1"]
    shown = text_of(response)
    assert seen.findall(shown) == [before], "a restart forgets the Pods, and changes no count"
    assert "2 Leases , 50 % 1 of them by its Pods" in shown
    assert "2 Leases , 50 % by its name alone" in shown
    assert re.search(r"Held by a dead node\s+2\s+by the node&#x27;s name or by its Pods", shown)
    asked = (
        r"The cluster was asked for the Pods of 2 holders, first at [\d:]+; of 2 it told the node"
    )
    assert re.search(asked, shown)
    assert "2 nodes hold nothing but their own heartbeat." in shown
    assert 'id="ask-pods"' not in response.content.decode()
    assert holders(operator.get("/c/a/holders/?q=worker-1")) == ["worker-1"]
    assert holders(operator.get("/c/a/holders/?kind=lock")) == []
    pods_run(board, operator="worker-2")  # another Pod of this name
    assert (items(operator)["cp-2"]["takes_down"], items(operator)["worker-2"]["takes_down"]) == (
        1,
        1,
    )
    beat = text_of(operator.get("/c/a/leases/kube-node-lease/worker-2/"))
    assert re.search(r"Held by this node and its Pods worker-2 .* operator election", beat)
    pods_run(board, operator="worker-1")
    beat = text_of(operator.get("/c/a/leases/kube-node-lease/worker-2/"))
    assert "Nothing is known to be held there. Holders asks the cluster for the Pods." in beat


@pytest.mark.django_db(transaction=True)
async def test_the_page_asks_for_pods_within_bounds_and_says_why_they_cannot_be_read(
    store, board, monkeypatch
):
    client = AsyncClient()
    await client.aforce_login(await sync_to_async(member)("olga", "operator"))
    page = (await client.get("/c/a/holders/?sort=name")).content.decode()
    (url,) = re.findall(r'id="ask-pods" href="([^"]+)" hx-get="\1" hx-trigger="load"', page)
    monkeypatch.setattr(holders_page, "MAX_ASKED", 2)
    async with ScriptedServer().running() as server:
        refused = answer(403, status(403, "Forbidden", "pods is forbidden"))
        server.script("verb", answer(200, {"spec": {"nodeName": "cp-2"}}), refused)
        source = parse_source(f"url:{server.url}")
        board.clusters["a"].client = await connect(source, kubeconfig=None)
        back = await client.get(url)
        assert (back.status_code, back["Location"]) == (302, "/c/a/holders/?sort=name")
        assert len(server.requests) == 2
        page = (await client.get(back["Location"])).content.decode()
        assert 'id="ask-pods"' in page
        await client.get(url)
        page = text_of(await client.get(back["Location"]))
        assert re.search(r"Pods in (keda|kube-system) cannot be read: pods is forbidden\.", page)
        asked = len(server.requests)
        await client.get(url)
        assert len(server.requests) == asked
        await board.clusters["a"].client.close()
    guest = AsyncClient()
    await guest.aforce_login(await sync_to_async(member)("gil", None))
    assert (await guest.get(url)).status_code == 403
    assert (await AsyncClient().get(url)).status_code == 302


def test_an_expired_lease_does_not_go_down_with_whom_it_still_names(store, operator):
    found = items(operator)
    assert found["cp-3"]["takes_down"] == 0
    assert [held["phase"] for held in found["cp-3"]["last_held"]] == ["expired"]


def test_the_last_holder_of_an_expired_lease_holds_nothing_now_everywhere(store, operator):
    assert holders(operator.get("/c/a/holders/?holds=now")) == ["cp-1", "cp-2", POD]
    response = operator.get("/c/a/holders/?holds=past")
    assert holders(response) == ["cp-3"]
    assert "0 Leases holds nothing now last held gone" in text_of(response)
    assert "Holders now 3 of 4 seen" in text_of(response)
    shown = text_of(operator.get("/c/a/holders/cp-3/"))
    assert "Lose their holder with it 0" in shown
    assert "Holds now 0 last held 1 expired Lease" in shown
    for item in (
        items(operator)["cp-3"],
        operator.get("/c/a/holders/cp-3/?format=json").json(),
    ):
        assert item["holds"] == []
        assert [held["name"] for held in item["last_held"]] == ["gone"]


def test_heartbeats_are_folded_into_one_line(store, operator):
    response = operator.get("/c/a/holders/")
    assert "worker-1" not in holders(response)
    assert "2 nodes hold nothing but their own heartbeat." in text_of(response)


def test_a_search_finds_a_node_by_its_heartbeat_alone(store, operator):
    assert holders(operator.get("/c/a/holders/?q=WORKER-1")) == ["worker-1"]


@pytest.mark.parametrize("text", ["8c2e41f0", "cp-1", "kube-system/sched"])
def test_a_search_finds_identities_hosts_and_what_they_hold(text, store, operator):
    assert "cp-1" in holders(operator.get("/c/a/holders/", {"q": text}))


def test_by_identity_each_stands_for_itself(store, operator):
    found = holders(operator.get("/c/a/holders/?group=identity"))
    assert "cp-1_8c2e41f0-5b1d-4f0e-9a57-2d9a3c1b7e44" in found
    assert "cp-1" not in found


def test_past_holders_of_the_range_are_listed(store, operator):
    remember(ChangeType.TAKEN_OVER, minutes_ago=30, holder="cp-1_abc", previous_holder="cp-9")
    remember(ChangeType.RELEASED, minutes_ago=90, previous_holder="cp-8")
    response = operator.get("/c/a/holders/?holds=past&range=1h")
    assert holders(response) == ["cp-3", "cp-9"]
    assert "holds nothing now" in text_of(response)
    assert holders(operator.get("/c/a/holders/?holds=past&sort=name")) == ["cp-3", "cp-8", "cp-9"]
    assert "cp-9" not in holders(operator.get("/c/a/holders/?holds=now"))


def test_terms_count_those_that_ended_and_those_that_go_on(store, operator):
    remember(ChangeType.TAKEN_OVER, minutes_ago=30, holder="cp-1_abc", previous_holder="cp-9")
    remember(ChangeType.TAKEN_OVER, minutes_ago=20, holder="cp-9", previous_holder="cp-1_abc")
    found = items(operator)
    assert found["cp-1"]["terms"] == 3
    assert found["cp-9"]["terms"] == 1


def test_a_lane_shows_when_anything_was_held(store, operator):
    watched()
    remember(ChangeType.TAKEN_OVER, minutes_ago=45, holder="cp-9", previous_holder="cp-8")
    remember(ChangeType.TAKEN_OVER, minutes_ago=30, holder="cp-1_abc", previous_holder="cp-9")
    html = operator.get("/c/a/holders/?range=1h&q=cp-9").content.decode()
    assert 'aria-label="Held something for 15 m 0 s of 1 h"' in html
    assert re.search(r"<title>1 term, [\d: A-Za-z]+ to [\d: A-Za-z]+ \(15 m 0 s\)</title>", html)


def test_a_lease_that_had_but_one_host_is_counted(store, operator):
    shown = text_of(operator.get("/c/a/holders/"))
    assert re.search(r"Only ever one host\s+4\s", shown)


def test_another_host_ends_the_count_of_single_hosts(store, operator):
    remember(ChangeType.TAKEN_OVER, minutes_ago=30, holder="cp-1_abc", previous_holder="cp-9")
    assert re.search(r"Only ever one host\s+3\s", text_of(operator.get("/c/a/holders/")))


def test_kinds_narrow_what_counts(store, operator):
    assert items(operator, "&kind=lock") == {}
    assert set(items(operator, "&kind=election")) == {"cp-1", "cp-2", "cp-3", POD}


def test_the_json_of_a_holder_is_the_contract(store, operator):
    answer = operator.get("/c/a/holders/?format=json&q=keda").json()
    assert list(answer) == ["items", "total", "next", "now"]
    (item,) = answer["items"]
    since = item["holds"][0].pop("held_since")
    assert item["holds"][0].pop("held_seconds") >= 3600
    assert item["holds"][0].pop("unwatched_seconds") == 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", since)
    assert item == {
        "cluster": "a", "holder": POD, "identities": [POD], "takes_down": 1, "share": 0.25,
        "terms": 1, "heartbeat": None, "pods_hold": [], "last_held": [],
        "holds": [
            {"namespace": "keda", "name": "operator", "kind": "election", "phase": "held"},
        ],
    }  # fmt: skip


def test_json_pages_lead_to_each_other_until_all_are_read(store, operator):
    url, found = "/c/a/holders/?format=json&limit=3&sort=name", []
    while url:
        answer = operator.get(url).json()
        found += [item["holder"] for item in answer["items"]]
        url = answer["next"]
    assert found == ["cp-1", "cp-2", "cp-3", POD]


def test_sorting_can_be_turned(store, operator):
    assert holders(operator.get("/c/a/holders/?sort=-name"))[0] == POD


def test_htmx_gets_the_part_that_a_filter_changes(store, operator):
    response = operator.get("/c/a/holders/?holds=now&q=", headers=HTMX)
    assert response.content.decode().lstrip().startswith('<div class="stack" id="board"')
    assert response["HX-Push-Url"] == "/c/a/holders/?holds=now"


def test_regions_fetched_again_leave_the_address_as_it_is(store, operator):
    response = operator.get("/c/a/holders/", headers=HTMX | {"X-Regions": "holders concentration"})
    assert 'id="concentration"' in response.content.decode()
    assert "HX-Push-Url" not in response


@pytest.mark.parametrize(
    "query", ["kind=heartbeat", "group=node", "sort=size", "holds=always", "range=2y", "page=0"]
)
def test_a_bad_filter_is_400_with_one_sentence(query, store, operator):
    response = operator.get(f"/c/a/holders/?{query}")
    assert response.status_code == 400
    assert "This filter cannot be used" in text_of(response)
    assert "cannot be" in operator.get(f"/c/a/holders/?format=json&{query}").json()["error"]


def test_an_empty_answer_says_what_was_asked(store, operator):
    shown = text_of(operator.get("/c/a/holders/?q=nobody-like-this&kind=lock"))
    assert "Contains nobody-like-this, kind is lock." in shown


def test_a_cluster_without_leases_has_no_holders(board, operator):
    board.clusters["a"].store.connection = Connection(
        state=ConnectionState.LIVE, since=datetime.now(UTC)
    )
    assert "Nobody holds anything" in text_of(operator.get("/c/a/holders/"))


def test_holders_that_were_never_read_are_unknown_and_not_none(board, operator):
    shown = text_of(operator.get("/c/a/holders/"))
    assert shown.count("? not read yet") == 4
    fill(board.clusters["a"].store, held("scheduler", "cp-1"))
    assert "not read yet" not in text_of(operator.get("/c/a/holders/"))


def test_a_holder_of_many_shows_some_and_leads_to_all(board, operator):
    store = board.clusters["a"].store
    fill(store, *[held(f"lease-{number:02}", "cp-1") for number in range(CHIPS + 4)])
    html = operator.get("/c/a/holders/").content.decode()
    assert html.count('class="tag"') == CHIPS
    assert 'href="/c/a/leases/?holder=cp-1">and 4 more</a>' in html


def test_only_who_may_read_sees_holders(store, guest, client):
    assert guest.get("/c/a/holders/").status_code == 403
    assert client.get("/c/a/holders/").status_code == 302


def test_a_term_that_begins_while_another_lasts_is_one_spell_with_an_edge():
    scale = Scale(NOW - timedelta(hours=1), NOW)

    def ago(minutes: float):
        return NOW - timedelta(minutes=minutes)

    terms = [(ago(90), ago(30)), (ago(45), ago(15)), (ago(6), NOW)]
    first, second = spells(terms, scale)
    assert (first.x, first.width, first.terms, first.edges) == (0.0, 75.0, 2, (25.0,))
    assert (second.x, second.width, second.edges) == (90.0, 10.0, (90.0,))
    assert spells([(ago(90), ago(61))], scale) == ()


def test_a_lane_has_a_bounded_number_of_spells():
    scale = Scale(NOW - timedelta(hours=1), NOW)
    step = timedelta(seconds=1)
    terms = [(NOW - 2 * n * step, NOW - (2 * n - 1) * step) for n in range(1, 1800)]
    assert len(spells(terms, scale)) <= 200
    assert sum(spell.terms for spell in spells(terms, scale)) == len(terms)


def test_the_other_leases_of_a_host_leave_out_the_one_shown(store, board):
    holdings, pods = holdings_of(board.clusters["a"].store), board.clusters["a"].pods
    one = store.get(ObjectName("kube-system", "scheduler"))
    beside = [other.lease.metadata.name for other in holdings.beside(one, pods)]
    assert beside == ["controller-manager", "cp-1"]
    vacant = one.replace(lease=store.get(ObjectName("kube-system", "free")).lease)
    assert holdings.beside(vacant, pods) == []
    agent = node("cp-1")
    agent = msgspec.structs.replace(
        agent,
        metadata=msgspec.structs.replace(agent.metadata, namespace="kube-system", name="agent"),
        spec=msgspec.structs.replace(agent.spec, holder_identity="agent-cp-1"),
    )
    drain = msgspec.structs.replace(
        agent,
        metadata=msgspec.structs.replace(agent.metadata, name="drain"),
        spec=msgspec.structs.replace(agent.spec, holder_identity="drain-cp-1", acquire_time=NOW),
    )  # a lock
    fill(store, *(tracked.lease for tracked in store.snapshot()), agent, drain)
    beside = Holdings(store).beside(store.get(ObjectName("kube-system", "agent")), pods)
    assert sorted(other.lease.metadata.name for other in beside) == [
        "controller-manager", "cp-1", "drain", "scheduler",
    ]  # fmt: skip


def leases_of(response) -> list[str]:
    return re.findall(r'data-lease-row="[^/]+/([^"]+)"', response.content.decode())


def test_one_holder_has_a_page_with_what_it_holds_and_held(store, board, operator):
    watched()
    remember(ChangeType.TAKEN_OVER, minutes_ago=30, name="cloud", holder="cp-1",
             previous_holder="cp-2")  # fmt: skip
    remember(ChangeType.TAKEN_OVER, minutes_ago=10, name="cloud", holder="cp-2",
             previous_holder="cp-1")  # fmt: skip
    unheld_since = datetime.now(UTC) - timedelta(minutes=3)
    cloud = ObjectName("kube-system", "cloud")
    incident_rows.store(open_incident(cloud, hosts=("cp-1",), unheld_since=unheld_since))
    response = operator.get("/c/a/holders/cp-1/")
    assert leases_of(response) == ["controller-manager", "scheduler", "cloud"]
    shown = text_of(response)
    assert "Lose their holder with it 2" in shown
    assert "Node, heartbeat in time" in shown
    assert "cloud not now" in shown
    assert "worker-7&#x27;s heartbeat stopped" in shown
    assert "3 m 0 s" in shown, "the gap goes on"
    assert "Held something for 20 m 0 s of 24 h" in response.content.decode()
    assert "worker-7&#x27;s heartbeat" not in text_of(operator.get("/c/a/holders/cp-2/"))


def test_what_its_pods_hold_stands_on_the_page_of_a_node(store, board, operator):
    pods_run(board, operator="cp-2")
    response = operator.get("/c/a/holders/cp-2/")
    assert leases_of(response) == ["operator", "cloud"]
    assert f'href="/c/a/holders/{POD}/"' in response.content.decode()
    item = operator.get("/c/a/holders/cp-2/?format=json").json()
    assert item.keys() == items(operator)["cp-2"].keys()
    assert (item["takes_down"], len(item["pods_hold"])) == (2, 1)


@pytest.mark.parametrize("own", [True, False])
def test_the_terms_of_the_pods_of_a_node_are_counted_with_its_own(store, board, operator, own):
    """The tile, its picture, the list below, the row in Holders and JSON agree."""
    watched()
    of_it = {"name": "operator", "namespace": "keda"}
    remember(ChangeType.ACQUIRED, minutes_ago=50, holder=POD, **of_it)
    remember(ChangeType.RELEASED, minutes_ago=40, previous_holder=POD, **of_it)
    remember(ChangeType.ACQUIRED, minutes_ago=20, holder=POD, **of_it)
    if own:
        remember(ChangeType.TAKEN_OVER, minutes_ago=60, holder="worker-1", **of_it)
        remember(ChangeType.RELEASED, minutes_ago=55, previous_holder="worker-1", **of_it)
    pods_run(board, operator="worker-1")
    terms, length = (3, "35 m 0 s") if own else (2, "30 m 0 s")
    response = operator.get("/c/a/holders/worker-1/")
    shown = text_of(response)
    assert re.search(rf"Terms, 24 h {terms} Held something for {length} of 24 h", shown)
    rows = re.findall(r'<div role="cell" class="num">(\d+)</div>', response.content.decode())
    assert sum(map(int, rows)) == terms
    assert operator.get("/c/a/holders/worker-1/?format=json").json()["terms"] == terms
    assert items(operator)["worker-1"]["terms"] == terms
    row = operator.get("/c/a/holders/").content.decode().partition('data-holder="worker-1"')[2]
    assert f'aria-label="Held something for {length} of 24 h' in row


def test_a_node_that_holds_its_heartbeat_alone_has_a_page(store, operator):
    shown = text_of(operator.get("/c/a/holders/worker-2/"))
    assert "It holds nothing but its own heartbeat." in shown


def test_a_name_that_no_path_bears_is_named_by_its_digest(store, operator):
    fill(store, held("odd", "team a/b?c"), held("other", "pods"))
    links = re.findall(r'href="(/c/a/holders/sha256:\w{64}/)"',
                       operator.get("/c/a/holders/").content.decode())  # fmt: skip
    found = {tuple(leases_of(operator.get(link))) for link in links}
    assert found == {("odd",), ("other",)}


def test_an_unknown_holder_leads_to_its_history(store, operator):
    remember(ChangeType.ACQUIRED, minutes_ago=60 * 24 * 40, holder="old-1")
    page = operator.get("/c/a/holders/old-1/").content.decode()
    assert 'href="/c/a/history/?q=old-1"' in page
    assert "old-1" in text_of(operator.get("/c/a/history/?q=old-1"))
    digest = f"sha256:{'0' * 64}"
    page = operator.get(f"/c/a/holders/{digest}/").content.decode()
    assert '<a class="btn" href="/c/a/history/">Look in History</a>' in page


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("nobody-like-this/", 404, "No Lease of a names nobody-like-this as its holder now"),
        ("cp-1/?range=2h", 400, "range cannot be"),
        ("cp-1/?format=xml", 400, "format cannot be"),
        ("nobody-like-this/place/", 404, "History knows older ones"),
    ],
)
def test_a_holder_that_is_not_there_or_a_bad_range_is_one_sentence(
    store, operator, path, status, says
):
    response = operator.get(f"/c/a/holders/{path}")
    assert response.status_code == status
    assert says in text_of(response)


@pytest.mark.django_db(transaction=True)
async def test_the_page_of_a_holder_says_where_it_runs(store, board):
    client = AsyncClient()
    await client.aforce_login(await sync_to_async(member)("olga", "operator"))
    async with ScriptedServer().running() as server:
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        server.script("verb", answer(200, {"metadata": {"name": "cp-1"}, "status": ready}))
        source = parse_source(f"url:{server.url}")
        board.clusters["a"].client = await connect(source, kubeconfig=None)
        shown = text_of(await client.get("/c/a/holders/cp-1/place/"))
        await board.clusters["a"].client.close()
    assert "Node cp-1, ready" in shown


def test_what_nobody_watched_is_fog_and_is_not_counted_as_held(store, operator):
    remember(ChangeType.CREATED, minutes_ago=50, name="cloud", holder="cp-2")
    span = {"cluster": "a", "process": "p", "ended": "stopped"}
    now = datetime.now(UTC)
    WatchSpan.objects.create(
        since=now - timedelta(hours=30), until=now - timedelta(minutes=40), **span
    )
    WatchSpan.objects.create(since=now - timedelta(minutes=10), until=now, **span)
    for path in ("", "cp-2/"):
        html = operator.get(f"/c/a/holders/{path}").content.decode()
        assert "Held something for 20 m 0 s of 24 h, and 30 m 0 s that nobody watched" in html
        assert 'class="fog"' in html


def test_what_others_held_between_two_terms_is_not_counted(store, operator):
    watched()
    for minutes, holder, before in ((20, "cp-1", ""), (19, "cp-2", "cp-1"), (18, "cp-1", "cp-2")):
        change = ChangeType.TAKEN_OVER if before else ChangeType.CREATED
        remember(change, minutes_ago=minutes, name="cloud", holder=holder, previous_holder=before)
    remember(
        ChangeType.TAKEN_OVER, minutes_ago=17, name="cloud", holder="cp-2", previous_holder="cp-1"
    )
    for path in ("", "cp-2/"):
        html = operator.get(f"/c/a/holders/{path}?range=30d").content.decode()
        assert "Held something for 18 m 0 s of 30 d" in html


def test_what_a_term_was_expired_is_not_counted(store, operator):
    watched()
    remember(ChangeType.CREATED, minutes_ago=20, name="cloud", holder="cp-2")
    remember(ChangeType.EXPIRED, minutes_ago=12, name="cloud", holder="cp-2")
    remember(ChangeType.RECOVERED, minutes_ago=10, name="cloud", holder="cp-2")
    for path in ("", "cp-2/"):
        html = operator.get(f"/c/a/holders/{path}?range=30d").content.decode()
        assert "Held something for 18 m 0 s of 30 d" in html


def test_where_a_holder_ran_is_asked_for_whatever_range_its_page_shows(store, operator):
    for days, holder in ((3.0, "cp-9"), (2.0, "cp-1")):
        change = ChangeType.TAKEN_OVER if holder == "cp-1" else ChangeType.CREATED
        previous = "cp-9" if holder == "cp-1" else None
        remember(
            change, minutes_ago=days * 1440, name="cloud", holder=holder, previous_holder=previous
        )
    assert operator.get("/c/a/holders/cp-9/").status_code == 404
    assert operator.get("/c/a/holders/cp-9/?range=7d").status_code == 200
    assert operator.get("/c/a/holders/cp-9/place/").status_code == 200


def test_an_instant_that_the_list_cannot_show_is_refused_in_a_sentence(store, operator):
    for form in ("", "&format=json"):
        answer = operator.get(f"/c/a/holders/?at=03:12{form}")
        assert answer.status_code == 400
        assert "cannot be used here: this list is as of now." in answer.content.decode()
