"""Odd text in every parameter of every URL, every field of every form and every socket message
breaks nothing: no answer is a 5xx, and afterwards every page, export and socket answers as before.

Seeded, and bounded by its number of cases. What there is to fill comes from the URL conf, from what
the pages ask of their queries, from the OpenAPI document and from the forms that the pages draw.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode

import pytest
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from django.contrib.auth.models import User
from django.http import QueryDict
from django.test import AsyncClient

from dashboard.access.kept_secrets import digest_of, seal
from dashboard.live.consumers import urlpatterns
from dashboard.live.socket_guards import own_sites_only
from dashboard.pages.api import openapi
from leases import models
from leases.actions.delete_many import pack
from leases.apiserver.serving import LeaseApiServer
from leases.domain.notify import Target
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.wire.microtime import format_microtime
from leases.wire.status import NotFound
from tests.support.board import KEY, fill, member
from tests.support.communicator import Socket
from tests.support.every_url import Page, every_page
from tests.support.page_fields import Fields
from tests.support.url_rules import RULES
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change
from tests.support.values.incident_rows import incident_with, store

pytestmark = pytest.mark.django_db(transaction=True)

SEED, TEXTS_OF_A_PARAMETER, TEXTS_OF_A_FIELD = 34, 2, 2
TEXTS = (
    "\ud800", "a\udfffb", "a\0b", "\u202egnp.exe\u2066", "x" * 100_000, "0000-01-01T00:00:00Z",
    "0001-01-01", "9999-12-31T23:59:59.999999Z", "\U0001f600\u2028\x85\ufeff\x1b[31m", "-1",
    "9" * 400, "{{ 7 }}{% x %}", "a=b,\nc=\ud800",
)  # fmt: skip
YAML = ('"\\ud800"', '"\\0"', "0x" + "f" * 100_000, "1" + ":1" * 100_000, "9999-12-31", "[" * 9000)
FORMATS = ("", "json", "csv", "ndjson")
ENDS_THE_SESSION = {"sign_out", "own_password"}
ROUTER = own_sites_only(URLRouter(urlpatterns))


@pytest.fixture
async def cluster(board, tmp_path):
    """Cluster a with a real Lease API, so that forms get as far as they can."""
    server = LeaseApiServer(data=tmp_path)
    await server.start()
    one = board.clusters["a"]
    one.client = await connect(parse_source("embedded"), kubeconfig=server.kubeconfig)
    now = format_microtime(datetime.now(UTC))
    spec = {
        "holderIdentity": "cp-1", "leaseDurationSeconds": 15, "acquireTime": now, "renewTime": now,
        "leaseTransitions": 7,
    }  # fmt: skip
    metadata = {"namespace": KEY.namespace, "name": KEY.name}
    fill(one.store, await one.client.create({"metadata": metadata, "spec": spec}))
    fill(board.clusters["b"].store)
    yield one
    await one.client.close()
    await server.stop()


@pytest.fixture
async def admin(cluster, transactional_db) -> AsyncClient:
    client = AsyncClient(raise_request_exception=False)
    await client.aforce_login(await sync_to_async(_rows)())
    return client


@pytest.fixture(scope="module")
def first_states() -> dict[tuple[str, str], int]:
    """What the first test finds before it begins: each begins with the same rows."""
    return {}


def _rows() -> User:
    """A row for each number in a URL. Returns an admin who is none of them."""
    now = datetime.now(UTC)
    bob = User.objects.create(pk=1, username="bob")
    ada = User.objects.filter(username="ada").first() or member("ada", "admin")
    models.Deletion.objects.create(
        pk=1, batch="one", cluster="a", user=bob, chosen=pack([]), total=0, made_at=now, beat_at=now
    )
    models.WallLink.objects.create(pk=1, name="lobby", created_at=now)
    models.ApiToken.objects.create(
        pk=1, name="ci", user=bob, role="operator", created_at=now, expires_at=now
    )
    models.Badge.objects.create(
        pk=1, name="wiki", digest=digest_of("nobody"), cluster="a", created_by="ada", created_at=now
    )
    models.Receiver.objects.create(
        pk=1, name="ops", sort="webhook", created_at=now, sealed=seal(Target(url="http://x.test/"))
    )
    models.Edit.objects.create(
        pk=1, at=now, user=bob, username="bob", cluster="a", namespace=KEY.namespace, name=KEY.name,
        action="lease.release",
    )  # fmt: skip
    changes = [a_change(n, at=now - timedelta(hours=n)) for n in (1, 2)]
    models.ChangeRecord.objects.bulk_create(map(to_row, changes))
    store(incident_with(*changes, id="first"))
    return ada


async def text_of(answer) -> str:
    if answer.streaming:
        return b"".join([part async for part in answer.streaming_content]).decode()
    return answer.content.decode()


async def states(admin: AsyncClient) -> dict[tuple[str, str], int]:
    """The status of each page and export."""
    found, known = {}, in_openapi()
    for page in every_page():
        for kind in FORMATS if "format" in known.get(page.name, ()) else FORMATS[:1]:
            answer = await admin.get(f"{page.path}?format={kind}" if kind else page.path)
            await text_of(answer)
            found[page.name, kind] = answer.status_code
    return found


def listen(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names that pages ask their queries for, from now on."""
    names: set[str] = set()
    for method in ("get", "getlist", "__getitem__", "__contains__"):
        plain = getattr(QueryDict, method)

        def listening(query, name, *rest, plain=plain):
            if not query._mutable:
                names.add(name)
            return plain(query, name, *rest)

        monkeypatch.setattr(QueryDict, method, listening)
    return names


def in_openapi() -> dict[str, set[str]]:
    found = {}
    for one in openapi("")["paths"].values():
        parameters = one["get"]["parameters"]
        found[one["get"]["operationId"]] = {
            each["name"] for each in parameters if each["in"] == "query"
        }
    return found


def odd_texts(chance: random.Random, count: int) -> Iterator[str]:
    yield TEXTS[chance.randrange(2)]  # half a surrogate pair
    yield from chance.sample(TEXTS[2:], count - 1)


def spelled(text: str) -> str:
    return quote(text, errors="surrogatepass")


@pytest.mark.long
async def test_odd_text_in_every_parameter_of_every_url(admin, first_states, monkeypatch):
    first_states |= first_states or await states(admin)
    chance, wrong, cases = random.Random(SEED), [], 0  # noqa: S311
    known = in_openapi()
    for page in every_page():
        with monkeypatch.context() as patch:
            asked = listen(patch)
            await text_of(await admin.get(page.path))
        names = (asked - {"_method"}) | known.get(page.name, set())
        for name in sorted(names):
            for text in odd_texts(chance, TEXTS_OF_A_PARAMETER):
                kind = chance.choice(FORMATS)
                more = f"&format={kind}" if kind and name != "format" else ""
                answer = await admin.get(f"{page.path}?{name}={spelled(text)}{more}")
                await text_of(answer)
                cases += 1
                if answer.status_code >= 500:
                    wrong.append((page.name, name, text[:20], kind, answer.status_code))
    assert not wrong, wrong
    assert cases > 200  # else it would show nothing
    assert await states(admin) == first_states


def fields_of(page: Page, text: str) -> dict[str, str]:
    """The fields that a page's forms send, with what a browser would send in them."""
    names = re.findall(r'<(?:input|select|textarea)[^>]* name="([\w-]+)"', text)
    drawn = Fields(text).values
    found = {name: drawn.get(name, "") for name in names} | drawn
    found |= {"reason": "drill", "confirm": "yes"}
    if page.name == "lease_delete":
        found["typed_name"] = "not this one"
    return found


def with_duration(lease: str, text: str) -> str:
    return re.sub("Seconds: .*", lambda _: f"Seconds: {text}", lease)


async def drawn_anew(admin: AsyncClient, cluster, page: Page) -> dict[str, str]:
    """The fields of a form as it is now; a button has no page."""
    try:
        fill(cluster.store, await cluster.client.get(KEY))
    except NotFound:
        fill(cluster.store)
    answer = await admin.get(page.path)
    return fields_of(page, await text_of(answer)) if answer.status_code == 200 else {}


@pytest.mark.long
async def test_odd_text_in_every_field_of_every_form(admin, cluster, first_states):
    first_states |= first_states or await states(admin)
    chance, wrong, seen = random.Random(SEED), [], Counter()  # noqa: S311
    taken = {name for name, rule in RULES.items() if "POST" in rule.methods} - ENDS_THE_SESSION
    for page in every_page():
        if page.name not in taken:
            continue
        given = await drawn_anew(admin, cluster, page)
        texts = [(name, text) for name in given for text in odd_texts(chance, TEXTS_OF_A_FIELD)]
        texts += [("text", one) for one in YAML if page.name == "lease_yaml"]
        texts = texts or [("kind", text) for text in TEXTS]
        for number, (name, text) in enumerate(texts):
            sent = given | {name: text}
            if text in YAML:
                sent["text"] = with_duration(given["text"], text)
            if name != "once":
                sent["once"] = f"{page.name} {number}"
            answer = await post(admin, page.path, sent)
            seen[answer.status_code // 100] += 1
            if answer.status_code >= 500:
                wrong.append((page.name, name, text[-20:], answer.status_code))
            if answer.status_code == 302:  # it was written
                given = await drawn_anew(admin, cluster, page) or given
    assert not wrong, wrong
    assert sum(seen.values()) > 150
    assert seen[3] > 20, seen  # else hardly any got further than the door
    after = await states(admin)
    moved = {which: (first_states[which], status) for which, status in after.items()}
    moved = {which: pair for which, pair in moved.items() if pair[0] != pair[1]}
    assert all(pair in ((200, 404), (404, 200), (302, 404)) for pair in moved.values()), moved


async def post(admin: AsyncClient, path: str, fields: dict[str, str]):
    body = urlencode(fields, errors="surrogatepass")
    return await admin.post(path, body, content_type="application/x-www-form-urlencoded")


def messages() -> Iterator[str]:
    """As the pages send them, with odd text in each place, and what is no such message."""
    for text in TEXTS:
        yield text
        for show in (
            {"show": {text: [text]}},
            {"show": {"row": [text, f"{text}/{text}"], "tile": [str(KEY), text]}},
            {"groups": [text]},
            {"query": text},
            {"drawn": text},
            {"field": text},
            {"feed": text, "feed_as": text},
        ):
            yield json.dumps(show)
    yield from (json.dumps({"feed": 10**30}), json.dumps({"jumps": -1}), "[" * 9000, "1", "")


async def test_odd_text_in_every_message_of_a_socket(cluster, transactional_db):
    olga = await sync_to_async(member)("olga", "operator")
    headers = [(b"host", b"testserver")]
    for text in messages():
        socket = Socket(ROUTER, "/c/a/live/page/", olga, headers)
        await socket.connect()
        await socket.say(text)
        await socket.receive_nothing(timeout=0.01)
        assert not socket.future.done() or socket.future.exception() is None, text[:60]
        await socket.leave()
    for path in ("/c/a/live/page/", "/c/a/live/changes/"):
        for query in ("", *(f"?key={spelled(text)[:4000]}" for text in TEXTS)):
            socket = Socket(ROUTER, path + query, olga, headers)
            await socket.connect()
            await socket.leave()
    feed = Socket(ROUTER, "/c/a/live/changes/", olga, headers)
    await feed.connect()
    assert "counts" in await feed.hear()
    await feed.leave()
