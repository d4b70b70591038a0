"""Leases whose holder no form could have written are edited and released by form all the same."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape
from urllib.parse import unquote

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from dashboard.forms.edit_form import EditForm
from leases.apiserver.serving import LeaseApiServer
from leases.domain.lease import ObjectName
from leases.history.database import from_stored
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.models import Edit
from leases.wire.microtime import format_microtime
from tests.support.board import async_browser_of, fill, remember
from tests.support.values.edge_values import VALUES

pytestmark = pytest.mark.django_db(transaction=True)

KEY = ObjectName("default", "odd")
PATH = "/c/a/leases/default/odd/edit/"
RELEASE = "/c/a/leases/default/odd/release/"
HOLDERS = [
    "a\0b",
    "\0",
    "x" * 100_000,
    "é\0" * 30_000,
    "two\r\nlines\t",
    "  blanks  ",
    "\u202egnp.exe",
    "<b>&amp;\"'",
    "=1+1",
]


@pytest.fixture
async def cluster(board, tmp_path):
    server = LeaseApiServer(data=tmp_path)
    await server.start()
    one = board.clusters["a"]
    one.client = await connect(parse_source("embedded"), kubeconfig=server.kubeconfig)
    yield one
    await one.client.close()
    await server.stop()


async def held_by(cluster, holder: str) -> None:
    now = format_microtime(datetime.now(UTC))
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": now}
    named = {"metadata": {"namespace": KEY.namespace, "name": KEY.name}, "spec": spec}
    fill(cluster.store, await cluster.client.create(named))


async def browser() -> AsyncClient:
    return await async_browser_of("ada", "admin")


def as_a_browser_sends(page: str) -> dict[str, str]:
    """The fields of the form as HTML says them: NUL is replaced, line breaks leave an input."""
    page = re.sub("(?s)<template>.*?</template>", "", page)
    inputs = re.findall(r'<input[^>]* name="([\w-]+)"((?:[^>"]|"[^"]*")*)>', page)
    values = [(name, re.search(r' value="([^"]*)"', rest)) for name, rest in inputs]
    fields = {name: value[1] if value else "" for name, value in values}
    clean = {name: unescape(value).replace("\0", "\ufffd") for name, value in fields.items()}
    return {name: re.sub(r"[\r\n]", "", value) for name, value in clean.items()}


async def changed_and_released(cluster, admin, holder: str) -> None:
    """Change its duration and leave the holder as it is; then release it."""
    await held_by(cluster, holder)
    sent = as_a_browser_sends((await admin.get(PATH)).content.decode())
    assert len(sent["seen"]) < 1000
    sent |= {"duration_seconds": "30", "reason": "drill"}
    preview = await admin.post(PATH, sent)
    assert preview.status_code == 200
    assert "The server would take this" in preview.content.decode()
    again = as_a_browser_sends(preview.content.decode()) | {"reason": "drill"}
    saved = await admin.post(PATH, again | {"confirm": "yes"})
    assert saved.status_code == 302, saved.content.decode()[-3000:]
    lease = await cluster.client.get(KEY)
    assert (lease.holder, lease.spec.lease_duration_seconds) == (holder, 30)
    row = await Edit.objects.alatest("pk")
    assert row.outcome == "done"
    assert from_stored(row.before["holderIdentity"]) == holder

    fill(cluster.store, lease)
    sent = as_a_browser_sends((await admin.get(RELEASE)).content.decode())
    saved = await admin.post(RELEASE, sent | {"reason": "drill", "confirm": "yes"})
    assert saved.status_code == 302, saved.content.decode()[-3000:]
    assert (await cluster.client.get(KEY)).holder is None
    assert (await Edit.objects.alatest("pk")).outcome == "done"
    assert await Edit.objects.acount() == 2


async def test_its_duration_is_changed_with_its_holder_kept_and_it_is_released(cluster, subtests):
    admin = await browser()
    for holder in HOLDERS:
        with subtests.test(holder=repr(holder[:12])):
            await changed_and_released(cluster, admin, holder)
            audit = await admin.get("/audit/")
            assert audit.status_code == 200
            assert len(audit.content) < 50_000
        await cluster.client.delete(KEY)
        await Edit.objects.all().adelete()


TURNS = 5
FIELDS = [*EditForm.base_fields, "labels-key", "annotations-value", "keep-holder_identity"]


async def test_any_value_of_a_field_is_used_or_refused(cluster, monkeypatch):
    """Previews alone: each begins with the Lease as it was. The fields take turns with values."""
    await held_by(cluster, "cp-1")
    admin = await browser()
    remember(await User.objects.aget(username="ada"), monkeypatch)
    page = (await admin.get(PATH)).content.decode()
    sent = as_a_browser_sends(page)
    drawn = set(sent) - {"csrfmiddlewaretoken", "q", "go"}  # the search's are on every page
    assert drawn == set(EditForm.base_fields) - {"reason", "labels", "annotations"}
    values = dict.fromkeys((*map(unquote, VALUES), *HOLDERS))
    for turn, field in enumerate(FIELDS):
        some = {"", "a\0b", "x" * 100_000, *list(values)[turn % TURNS :: TURNS]}
        for value in values if field == "holder_identity" else sorted(some):
            answer = await admin.post(PATH, sent | {field: value})
            assert answer.status_code in (200, 409, 422), (field, value[:40])
            assert "Traceback" not in answer.content.decode()


async def test_a_conflict_with_a_long_holder_is_shown_short(cluster):
    await held_by(cluster, "x" * 100_000)
    admin = await browser()
    sent = as_a_browser_sends((await admin.get(PATH)).content.decode())
    await cluster.client.patch(KEY, {"spec": {"holderIdentity": "y" * 100_000}})
    sent |= {"holder_identity": "mine", "reason": "drill"}
    answer = await admin.post(PATH, sent)
    assert answer.status_code == 409
    text = answer.content.decode()
    assert "100,000 characters" in text
    assert len(text) < 60_000
