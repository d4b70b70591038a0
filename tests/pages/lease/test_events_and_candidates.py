"""What a page asks the cluster about a Lease, against a real Lease API and a scripted one."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.template.loader import render_to_string
from django.test import AsyncClient

from dashboard.pages.lease.events_and_candidates import asked_view
from dashboard.parts import cluster_questions
from dashboard.parts.holder_place import place_view
from leases.apiserver.resources import CLE_GATE
from leases.apiserver.serving import LeaseApiServer
from leases.domain.cause.facts import PodFact
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.kube import holder_pods
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.holder_pods import HolderPlace
from leases.wire.microtime import format_microtime
from tests.support.api_client import LeaseApi
from tests.support.board import a_lease, fill, member
from tests.support.scripted_api import ScriptedServer, answer, silence, status
from tests.support.values.change_rows import to_row

pytestmark = pytest.mark.django_db(transaction=True)

KEY = ObjectName("default", "story")
PATH = f"/c/a/leases/{KEY}/asked/"
EMBEDDED = parse_source("embedded")
HTMX = {"HX-Request": "true"}
CANDIDATES = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates"


@pytest.fixture
async def operator(transactional_db):
    client = AsyncClient()
    await client.aforce_login(await sync_to_async(member)("olga", "operator"))
    return client


@pytest.fixture
async def cluster(board, tmp_path):
    """Cluster a with a coordinated Lease held by cp-1, for which two stand."""
    server = LeaseApiServer(data=tmp_path, feature_gates=frozenset({CLE_GATE}))
    await server.start()
    one = board.clusters["a"]
    one.client = await connect(parse_source("embedded"), kubeconfig=server.kubeconfig)
    now = format_microtime(datetime.now(UTC))
    spec = {
        "holderIdentity": "cp-1", "leaseDurationSeconds": 15, "renewTime": now,
        "strategy": "OldestEmulationVersion", "preferredHolder": "cp-2",
    }  # fmt: skip
    body = {"metadata": {"namespace": "default", "name": "story"}, "spec": spec}
    fill(one.store, await one.client.create(body))
    api = LeaseApi(server.kubeconfig)
    for name, emulation in (("cp-1", "1.36.0"), ("cp-2", "1.35.0")):
        stands = {
            "leaseName": "story", "binaryVersion": "1.37.0", "emulationVersion": emulation,
            "strategy": "OldestEmulationVersion", "renewTime": now,
        }  # fmt: skip
        made = {"metadata": {"name": name, "namespace": "default"}, "spec": stands}
        await sync_to_async(api.send)("POST", CANDIDATES, made)
    yield one
    await one.client.close()
    await server.stop()


@pytest.fixture
async def scripted(board):
    """Cluster a, whose every answer is scripted, and the server that gives them."""
    async with ScriptedServer().running() as server:
        one = board.clusters["a"]
        one.client = await connect(parse_source(f"url:{server.url}"), kubeconfig=None)
        yield one, server
        await one.client.close()


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


async def test_the_part_lists_candidates_the_expected_winner_and_the_writers(cluster, operator):
    response = await operator.get(PATH, headers=HTMX)
    assert (
        response.content.decode()
        .lstrip()
        .startswith('<div class="stack" id="asked" data-asked-of=')
    )
    shown = text_of(response)
    assert "cp-2 should win by OldestEmulationVersion." in shown
    assert "It has the oldest emulation version, 1.35.0." in shown
    assert re.search(r"cp-1 holds .* cp-2 preferred should win", shown)
    assert "There are none. Kubernetes keeps an Event for an hour by default." in shown
    assert "There is no Pod cp-1 in default: the holder runs in another namespace" in shown
    assert "There are no Events of this Pod" not in shown
    assert "holderIdentity, leaseDurationSeconds, preferredHolder, renewTime, strategy" in shown


CRASHED = {
    "reason": "OOMKilled", "exitCode": 137, "startedAt": "2026-11-20T09:00:00Z",
    "finishedAt": "2026-11-20T11:00:00Z",
}  # fmt: skip
CRASHES = {
    "name": "main",
    "restartCount": 4,
    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    "lastState": {"terminated": CRASHED},
}
KILLED = {
    "involvedObject": {"kind": "Pod", "namespace": "default", "name": "cp-1"},
    "reason": "BackOff", "message": "Back-off restarting main", "count": 3,
    "lastTimestamp": "2026-11-20T11:00:01Z", "source": {"component": "kubelet"},
}  # fmt: skip


async def test_the_part_leads_to_the_pod_its_events_and_its_log(
    cluster, operator, tmp_path, monkeypatch
):
    api = LeaseApi(tmp_path / "kubeconfig")
    monkeypatch.setattr(holder_pods, "FRESH", 0.0)

    async def send(method, path, **body):
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        await sync_to_async(api.send)(method, f"/api/v1/{path}", body, kind)

    async def shown():
        return text_of(await operator.get(PATH, headers=HTMX))

    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    await send("POST", "nodes", metadata={"name": "cp-1"}, status=ready)
    assert re.search(r"Where the holder runs as of \d\d:\d\d:\d\d Node cp-1, ready", await shown())
    containers = [{"name": name, "image": "demo:1"} for name in ("side", "main")]
    spec = {"nodeName": "node-7", "containers": containers}
    await send("POST", "namespaces/default/pods", metadata={"name": "cp-1"}, spec=spec)
    found = await shown()
    assert "Pod default/cp-1 State is Pending Restarts 0 Node node-7" in found
    kubeconfig = settings.LEASEBOARD.data / "kubeconfig"
    log = f"kubectl --kubeconfig {kubeconfig} --namespace default logs cp-1 --container"
    assert f"The log {log} side --tail 100" in found
    assert "There are no Events of this Pod, as of" in found
    status = {"phase": "Running", "containerStatuses": [CRASHES]}
    await send("PATCH", "namespaces/default/pods/cp-1/status", status=status)
    await send("POST", "namespaces/default/events", metadata={"name": "cp-1.1"}, **KILLED)
    found = await shown()
    assert "waits: CrashLoopBackOff Restarts 4" in found
    assert re.search(r"OOMKilled, exit code 137, at .*11:00:00, after 2 h 0 m", found)
    assert f"{log} main --previous" in found
    assert re.search(r"11:00:01 BackOff Back-off restarting main by kubelet 3 times", found)
    about = {"kind": "Lease", "namespace": "default", "name": "story"}
    event = {"involvedObject": about, "reason": "LeaderElection", "message": "cp-1 became leader"}
    await send("POST", "namespaces/default/events", metadata={"name": "story.1"}, **event)
    assert "LeaderElection cp-1 became leader" in await shown()


def test_the_log_is_asked_for_in_the_context_that_the_cluster_was_named_by():
    pod = PodFact(key=KEY, read_at=datetime.now(UTC), container="main", phase="Running")
    source = parse_source("context:of the team")
    ((_, command),) = place_view(HolderPlace(pod=pod), source, datetime.now(UTC)).logs
    assert command == (
        "kubectl --context 'of the team' --namespace default logs story --container main --tail 100"
    )


async def test_hand_over_names_the_candidates_first(cluster, operator):
    at = datetime.now(UTC) - timedelta(minutes=5)
    for change, holder, before in (("acquired", "old", None), ("replaced", "cp-1", "old")):
        at += timedelta(minutes=1)
        row = Change(
            cluster="a", namespace="default", name="story", uid="u", kind=Kind.ELECTION,
            change=ChangeType(change), at=at, observed_at=at, resource_version=str(at.minute),
            holder=holder, previous_holder=before,
        )  # fmt: skip
        await sync_to_async(to_row(row).save)()
    admin = AsyncClient()
    await admin.aforce_login(await sync_to_async(member)("ada", "admin"))
    page = (await admin.get("/c/a/leases/default/story/hand-over/")).content.decode()
    assert re.findall(r'name="to" value="([^"]+)"', page) == ["cp-2", "old"]
    assert "candidate, " in page


async def test_without_a_script_it_is_a_page_of_its_own(cluster, operator):
    response = await operator.get(PATH)
    assert "<!doctype html>" in response.content.decode()
    assert "What the cluster says of story" in text_of(response)
    assert "HX-Request" in response["Vary"]


async def test_strangers_and_guests_get_nothing(cluster, operator):
    assert (await AsyncClient().get(PATH)).status_code == 302
    guest = AsyncClient()
    await guest.aforce_login(await sync_to_async(member)("gil", None))
    assert (await guest.get(PATH)).status_code == 403


async def test_a_missing_permission_is_one_quiet_sentence(scripted, operator):
    _, server = scripted
    server.script("verb", answer(403, status(403, "Forbidden", "no")))
    response = await operator.get(PATH, headers=HTMX)
    assert response.status_code == 200
    assert "We may not read Events here: grant list on events." in text_of(response)
    assert "We may not read this Lease here: grant get on leases." in text_of(response)
    assert "Pods" not in text_of(response)  # nobody is known to hold it


async def test_pods_that_may_not_be_read_are_one_sentence_with_the_reason(scripted, operator):
    cluster, server = scripted
    fill(cluster.store, a_lease(KEY, holder="web-5ln7kvmbd-x7k2q"))
    server.script("verb", answer(403, status(403, "Forbidden", 'cannot get resource "pods"')))
    shown = text_of(await operator.get(PATH, headers=HTMX))
    assert "Pods in default cannot be read: cannot get resource &quot;pods&quot;." in shown
    assert "kubectl" not in shown


async def test_a_silent_cluster_holds_no_page_for_long(scripted, monkeypatch):
    cluster, server = scripted
    # Long enough that no busy machine lets the limit of the whole question pass as well.
    monkeypatch.setattr(cluster_questions, "WITHIN", 1.0)
    server.script("verb", silence())
    asked = await cluster_questions.ask(cluster, KEY)
    for part in (asked.managed, asked.events, asked.candidates):
        assert isinstance(part, cluster_questions.NoAnswer)
        assert "did not answer within 1 s" in part.text


async def test_a_cluster_that_is_not_connected_says_so(board, operator):
    assert "a is not connected." in text_of(await operator.get(PATH, headers=HTMX))


def test_managed_fields_are_shown_by_their_names():
    fields = {
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {"f:holderIdentity": {}, "f:renewTime": {}},
    }
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    old = {"manager": "kubectl", "operation": "Apply", "time": "2026-11-20T11:00:00Z"}
    new = {"manager": "scheduler", "operation": "Update", "fieldsV1": fields, "time": "nonsense"}
    asked = cluster_questions.ClusterAnswers(managed=[old, new], events=(), candidates=None)
    first, second = asked_view(asked, None, EMBEDDED, now + timedelta(seconds=1)).managers
    assert (first["manager"], first["fields"]) == (
        "scheduler",
        "holderIdentity, labels.app, renewTime",
    )
    assert first["moment"] is None
    assert second["moment"] is not None
    assert second["moment"].text == "11:00:00"
    drawn = render_to_string("leases/_moment.html", {"moment": second["moment"]})
    assert "11:00:00" in drawn
    assert "ago" not in drawn, "an age would stand still"
