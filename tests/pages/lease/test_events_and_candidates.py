"""What a page asks the cluster about a Lease, against a real Lease API and a scripted one."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from dashboard.pages.lease.events_and_candidates import asked_view
from dashboard.parts import cluster_questions
from leases.apiserver.resources import CLE_GATE
from leases.apiserver.serving import LeaseApiServer
from leases.domain.lease import ObjectName
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.wire.microtime import format_microtime
from tests.support.api_client import LeaseApi
from tests.support.board import fill, member
from tests.support.scripted_api import ScriptedServer, answer, silence, status

pytestmark = pytest.mark.django_db(transaction=True)

KEY = ObjectName("default", "story")
PATH = f"/c/a/leases/{KEY}/asked/"
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
    assert response.content.decode().lstrip().startswith('<div class="stack" id="asked">')
    shown = text_of(response)
    assert "cp-2 should win by OldestEmulationVersion." in shown
    assert "It has the oldest emulation version, 1.35.0." in shown
    assert re.search(r"cp-1 holds .* cp-2 preferred should win", shown)
    assert "There are none. Kubernetes keeps an Event for an hour by default." in shown
    assert "Where the holder runs" not in shown
    assert "holderIdentity, leaseDurationSeconds, preferredHolder, renewTime, strategy" in shown


async def test_the_part_says_where_the_holder_runs_and_what_it_recorded(
    cluster, operator, tmp_path
):
    api = LeaseApi(tmp_path / "kubeconfig")

    async def post(path, **body):
        await sync_to_async(api.send)("POST", path, {"metadata": {"name": "cp-1"}, **body})

    async def shown():
        return text_of(await operator.get(PATH, headers=HTMX))

    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    await post("/api/v1/nodes", status=ready)
    assert "Where the holder runs as of" in await shown()
    assert "Node cp-1 is ready." in await shown()
    await post("/api/v1/namespaces/default/pods", spec={"nodeName": "node-7"})
    assert re.search(r"Pod cp-1 is Pending\. Its Node is node-7 ?\.", await shown())
    about = {"kind": "Lease", "namespace": "default", "name": "story"}
    event = {"involvedObject": about, "reason": "LeaderElection", "message": "cp-1 became leader"}
    await post("/api/v1/namespaces/default/events", **event)
    assert "LeaderElection cp-1 became leader" in await shown()


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
    assert "Where the holder runs" not in text_of(response)


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
    first, second = asked_view(asked, None, now + timedelta(seconds=1)).managers
    assert (first["manager"], first["fields"]) == (
        "scheduler",
        "holderIdentity, labels.app, renewTime",
    )
    assert first["moment"] is None
    assert second["moment"] is not None
    assert second["moment"].text == "11:00:00"
