"""Malformed, hostile and oversized requests get the code that the real server gives, and nobody
else notices.
"""

from __future__ import annotations

import asyncio
import re
import select
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from leases.apiserver.codec.go_json import MAX_DEPTH
from leases.apiserver.serving import LeaseApiServer
from tests.apiserver.clients import LEASES, Client, Process, lease, make_tokens
from tests.apiserver.codec.wire import Heard, connect, exchange, hear, message
from tests.apiserver.http.lowering import lower

BASE = f"{LEASES}/base"
YAML = "application/yaml"
JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
MIB = 1024 * 1024
TYPED = '"apiVersion":"coordination.k8s.io/v1","kind":"Lease"'


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process(tmp_path_factory.mktemp("hostile") / "data") as process:
        client = Client(process.url)
        assert client.call("POST", LEASES, lease("base", leaseTransitions=3)).status == 201
        client.close()
        yield process
        assert "Traceback" not in process.log.read_text()


@pytest.fixture
async def own_api(tmp_path: Path) -> AsyncIterator[LeaseApiServer]:
    """A server in this event loop, whose limits a test can lower."""
    make_tokens(tmp_path)
    server = LeaseApiServer(data=tmp_path)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture(autouse=True)
def others_are_served(api: Process) -> Iterator[None]:
    yield
    assert exchange(api.url, message("GET", BASE)).code == 200


def post(api: Process, body: bytes, kind: str = "application/json") -> Heard:
    return exchange(api.url, message("POST", LEASES, body, kind))


def patch(api: Process, body: bytes, kind: str) -> Heard:
    query = "?fieldManager=x&force=true" if kind == APPLY else ""
    return exchange(api.url, message("PATCH", BASE + query, body, kind))


def nested(depth: int, inside: bytes = b"1") -> bytes:
    return b'{"a":' * depth + inside + b"}" * depth


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 5_000, 400_000])
@pytest.mark.parametrize("kind", ["application/json", YAML])
def test_a_body_that_is_too_deep(api: Process, kind: str, depth: int) -> None:
    for body in (nested(depth), b"[" * depth, b"[" * depth + b"]" * depth):
        told = post(api, body, kind)
        assert told.code == 400
        assert "exceeded max depth" in told.status["message"]


@pytest.mark.parametrize("kind", [JSON_PATCH, MERGE, STRATEGIC, APPLY])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100_000])
def test_a_patch_that_is_too_deep(api: Process, kind: str, depth: int) -> None:
    deep = nested(depth)
    body = b'[{"op":"add","path":"/x","value":%s}]' % deep if kind == JSON_PATCH else deep
    told = patch(api, body, kind)
    assert told.code == 400
    assert "exceeded max depth" in told.status["message"]


def test_what_is_deep_but_not_too_deep_is_an_unknown_field(api: Process) -> None:
    body = b'{"metadata":{"name":"deep"},"zzz":%s}' % nested(MAX_DEPTH - 1)
    told = exchange(api.url, message("POST", f"{LEASES}?dryRun=All", body))
    assert told.code == 201
    assert 'unknown field "zzz"' in told.head.replace("\\", "")


def test_a_json_patch_cannot_dig_deep_by_moving(api: Process) -> None:
    step = (
        '{"op":"add","path":"/y","value":{}},{"op":"move","from":"/z","path":"/y/a"},'
        '{"op":"move","from":"/y","path":"/z"}'
    )
    steps = ",".join(['{"op":"add","path":"/z","value":1}', *([step] * 3000)])
    assert patch(api, f"[{steps}]".encode(), JSON_PATCH).status["code"] == 422


def test_a_json_patch_cannot_grow_by_copying(api: Process) -> None:
    double = '{"op":"copy","from":"/z","path":"/z/-"}'
    steps = ",".join(['{"op":"add","path":"/z","value":["xxxxxxxxxx"]}', *([double] * 60)])
    assert patch(api, f"[{steps}]".encode(), JSON_PATCH).status["code"] == 422


def test_a_json_patch_of_too_many_operations(api: Process) -> None:
    test = '{"op":"test","path":"/kind","value":"Lease"}'
    told = patch(api, f"[{','.join([test] * 10_001)}]".encode(), JSON_PATCH)
    assert told.code == 413
    assert "The allowed maximum operations in a JSON patch is 10000" in told.status["message"]


def test_a_body_of_just_three_mebibytes_is_read_and_one_byte_more_is_not(api: Process) -> None:
    for size, code in ((3 * MIB, 201), (3 * MIB + 1, 413), (4 * MIB, 413), (20 * MIB, 413)):
        body = b'{"metadata":{"name":"big"},"zzz":"'
        body += b"x" * (size - len(body) - 2) + b'"}'
        told = exchange(api.url, message("POST", f"{LEASES}?dryRun=All", body))
        assert told.code == code
        if code == 413:
            assert told.status["message"] == "Request entity too large: limit is 3145728"
            assert told.status["reason"] == "RequestEntityTooLarge"


@pytest.mark.parametrize("kind", [JSON_PATCH, MERGE, STRATEGIC, APPLY])
def test_a_patch_of_four_mebibytes(api: Process, kind: str) -> None:
    assert patch(api, b" " * 4 * MIB, kind).status["code"] == 413


LISTS = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (at, at, b",".join([b"*%c" % (at - 1)] * 9)) for at in b"bcdefghijk"
)
MAPS = b"a: &a {x: 1}\n" + b"".join(
    b"%c: &%c {p: *%c, q: *%c, r: *%c}\n" % (at, at, at - 1, at - 1, at - 1)
    for at in b"bcdefghijklmnopqrstuvwxyz"
)


@pytest.mark.parametrize("bomb", [LISTS, MAPS], ids=["lists", "maps"])
def test_aliases_of_aliases_are_refused(api: Process, bomb: bytes) -> None:
    for told in (post(api, bomb, YAML), patch(api, bomb, APPLY)):
        assert told.code == 400
        assert "yaml: document contains excessive aliasing" in told.status["message"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"&a [*a]", "anchor 'a' value contains itself"),
        (b"a: *b", "unknown anchor 'b' referenced"),
        (b'a: !!binary "%%%"', "!!binary value contains invalid base64 data"),
        (b"a: !!int x", "cannot decode !!str `x` as a !!int"),
        (b"a: .inf", "json: unsupported value: +Inf"),
        (b"<<: [1]", "map merge requires map or sequence of maps as the value"),
        (b"? [a]\n: 1", "invalid map key"),
        (b"a: b: c", "mapping values are not allowed in this context"),
        (b"a: \x00", "control characters are not allowed"),
        (b"a: \xff", "invalid leading UTF-8 octet"),
        (b"%YAML 9.9\n--- a", "found incompatible YAML document"),
        (b"a: [", "did not find expected node content"),
    ],
)
def test_yaml_that_cannot_be_read(api: Process, text: bytes, told: str) -> None:
    for heard in (post(api, text, YAML), patch(api, text, APPLY)):
        assert heard.code == 400
        assert told in heard.status["message"]


@pytest.mark.parametrize(
    ("text", "holder"),
    [
        (b"!!python/object/apply:os.system [id]", None),
        (b"spec: {holderIdentity: !!python/name:os.system id}", "id"),
        (b"spec: {holderIdentity: !mine x}", "x"),
        (b"spec: {holderIdentity: !!str 12}", "12"),
        (b"spec: {holderIdentity: !!binary aGk=}", "hi"),
        (b"spec: {holderIdentity: 2024-05-01}", "2024-05-01"),
        (b"spec: &s {holderIdentity: a}\nother: *s", "a"),
        (b"x: &x {holderIdentity: a}\nspec: {<<: *x}", "a"),
        (b'\xef\xbb\xbfspec: {holderIdentity: "\\0"}', "\0"),
    ],
)
def test_yaml_tags_make_no_objects(api: Process, text: bytes, holder: str | None) -> None:
    query = "?dryRun=All&fieldValidation=Ignore"
    named = text if text[:2] == b"!!" else b"%s\nmetadata: {name: t}" % text
    heard = exchange(api.url, message("POST", LEASES + query, named, YAML))
    assert heard.code == (400 if holder is None else 201)
    if holder is not None:
        client = Client(api.url)
        made = client.call("POST", LEASES + query, named, content_type=YAML)
        client.close()
        assert made.json["spec"]["holderIdentity"] == holder


@pytest.mark.parametrize(
    ("body", "code", "told"),
    [
        (b"", 400, "unexpected end of JSON input"),
        (b"nul", 400, "unexpected end of JSON input"),
        (b"[]", 400, "cannot unmarshal array"),
        (b'{"a":\x00}', 400, "invalid character '\\x00' looking for beginning of value"),
        (b'{"a":"\x00"}', 400, "invalid character '\\x00' in string literal"),
        (b'{"a":NaN}', 400, "invalid character 'N' looking for beginning of value"),
        (b'{"a":1}{', 400, "invalid character '{' after top-level value"),
        (b'{"spec":{"leaseDurationSeconds":1e400}}', 400, "cannot unmarshal number 1e400"),
        (b'{"spec":{"leaseDurationSeconds":%s}}' % (b"9" * 5000), 400, "cannot unmarshal number"),
        (b'{"spec":{"holderIdentity":"a","holderIdentity":1}}', 400, "cannot unmarshal number"),
        (b'{"metadata":{"name":"a\\u0000"}}', 422, "a lowercase RFC 1123 subdomain"),
        (b'{"kind":"\xff"}', 400, "no kind"),
    ],
)
def test_json_that_is_none_of_ours(api: Process, body: bytes, code: int, told: str) -> None:
    heard = post(api, body)
    assert heard.code == code
    assert told in heard.status["message"]


@pytest.mark.parametrize("kind", ["application/json", YAML])
def test_a_review_that_asks_nonsense(api: Process, kind: str) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    asked = b'{"spec":{"resourceAttributes":{"verb":1e5}}}'
    assert exchange(api.url, message("POST", path, asked, kind)).status["code"] == 400
    for asked in (b'{"spec":{"more":1e5}}', b'{"spec":null}', b'{"more":[1.5,{}]}'):
        assert exchange(api.url, message("POST", path, asked, kind)).code == 201


def test_bytes_that_are_no_utf_8_become_replacement_characters(api: Process) -> None:
    body = b'{"metadata":{"name":"bytes"},"spec":{"holderIdentity":"a\xff\xed\xa0\x80b\\ud800"}}'
    heard = exchange(api.url, message("POST", f"{LEASES}?dryRun=All", body))
    assert heard.code == 201
    assert '"holderIdentity":"a\ufffd\ufffd\ufffd\ufffdb\ufffd"' in heard.body.decode()


def test_a_name_that_comes_twice_counts_the_last_time_and_is_told(api: Process) -> None:
    body = b'{"metadata":{"name":"twice"},"spec":{"holderIdentity":"a","holderIdentity":"b"}}'
    heard = exchange(api.url, message("POST", f"{LEASES}?dryRun=All", body))
    assert (heard.code, b'"holderIdentity":"b"' in heard.body) == (201, True)
    assert 'duplicate field "spec.holderidentity"' in heard.head.replace("\\", "")
    strict = message("POST", f"{LEASES}?dryRun=All&fieldValidation=Strict", body)
    assert exchange(api.url, strict).status["code"] == 400


def with_finalizers(kind: str) -> bytes:
    names = ",".join(f'"{kind}/{at}"' for at in range(25_000))
    return f'{{{TYPED},"metadata":{{"name":"long","finalizers":[{names}]}}}}'.encode()


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC, APPLY])
def test_long_lists_cost_their_length_and_not_its_square(api: Process, kind: str) -> None:
    exchange(api.url, message("POST", LEASES, with_finalizers("x")))
    query = "?dryRun=All" + ("&fieldManager=x&force=true" if kind == APPLY else "")
    target = f"{LEASES}/long{query}"
    assert exchange(api.url, message("PATCH", target, with_finalizers("y"), kind)).code == 200


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("/%", 400),
        ("/%zz", 400),
        ("*", 400),
        (f"{LEASES}/%2", 400),
        (f"{LEASES}/a%2fb", 404),
        (f"{LEASES}/%00", 404),
        (f"{LEASES}/%ff", 404),
        (f"{LEASES}/..", 404),
        (f"{LEASES}?limit=%zz&%=%&;=;", 200),
        (f"{LEASES}?limit={'9' * 5000}", 400),
        (f"{LEASES}?limit=x", 400),
        (f"{LEASES}?labelSelector={'(' * 9000}", 400),
        (f"{LEASES}?labelSelector=%ff", 400),
        (f"{LEASES}?fieldSelector=%00", 400),
        (f"{LEASES}?continue={'A' * 9000}", 400),
        (f"{LEASES}?resourceVersion={'9' * 5000}", 400),
        ("//", 404),
        ("/" + "a" * 60_000, 404),
    ],
)
def test_odd_paths_and_queries(api: Process, target: str, code: int) -> None:
    assert exchange(api.url, message("GET", target)).code == code


@pytest.mark.parametrize("method", ["PROPFIND", "FOO", "TRACE", "get", "A" * 5000, "M-SEARCH"])
def test_odd_methods_are_405(api: Process, method: str) -> None:
    assert exchange(api.url, message(method, LEASES)).status["code"] == 405


def test_an_odd_method_behind_a_good_request_repeats_nothing(api: Process) -> None:
    data = message("POST", LEASES, b'{"metadata":{"generateName":"once-"}}') + b"FOO / HTTP/1.1\r\n"
    with connect(api.url) as connection:
        connection.sendall(data)
        while connection.recv(65536):
            pass
    listed = exchange(api.url, message("GET", LEASES)).body
    assert len(set(re.findall(rb"once-[a-z0-9]{5}", listed))) <= 1


@pytest.mark.parametrize(
    "data",
    [
        b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET /x HTTP/9.9\r\n\r\n",
        b"GET /x HTTP/1.1\r\nA\x00: b\r\n\r\n",
        b"GET /x HTTP/1.1\r\nA: \x00\r\n\r\n",
        b"GET /x HTTP/1.1\r\n folded: b\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused_in_plain_text(api: Process, data: bytes) -> None:
    with connect(api.url) as connection:
        connection.sendall(data)
        answers = b""
        while piece := connection.recv(65536):
            answers += piece
    assert b"500" not in answers
    assert answers.endswith(b"400 Bad Request")


@pytest.mark.parametrize(
    "flood",
    [
        b"X: " + b"y" * 2 * MIB,
        b"\r\n".join(b"X-%d: y" % at for at in range(200_000)),
        b"A" * 2 * MIB,
    ],
    ids=["one long value", "many headers", "one long name"],
)
def test_a_flood_of_headers_is_431(api: Process, flood: bytes) -> None:
    with connect(api.url) as connection:
        try:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n" + flood)
            heard = hear(connection)
        except OSError:
            return  # it hung up while we were sending, and our answer went with it
    assert heard.code == 431
    assert "connection: close" in heard.head


def test_odd_headers_do_no_harm(api: Process) -> None:
    for more in (
        b"Accept: \xff\r\n",
        b"Accept: ;;;,,,q=\r\n",
        b"Accept: application/json;q=nan\r\n",
        b"Audit-ID: \xff\r\n",
        b"User-Agent: \xff\xfe\r\n",
        b"Accept-Encoding: \xff\r\n",
        b"X: " + b"y" * 60_000 + b"\r\n",
        b"Expect: 100-continue\r\n",
    ):
        body = b'{"metadata":{"generateName":"h-"}}'
        heard = exchange(api.url, message("POST", f"{LEASES}?dryRun=All", body, more=more))
        assert heard.code in (100, 201, 406), more


@pytest.mark.parametrize("other", [b"h2c", b"websocket"])
def test_an_offer_of_another_protocol_is_not_heard(api: Process, other: bytes) -> None:
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAM\r\nUpgrade: %s\r\n" % other
    body = b'{"metadata":{"generateName":"u-"}}'
    sent = message("POST", f"{LEASES}?dryRun=All", body, more=offer)
    with connect(api.url) as connection:
        for pieces in ([sent], [sent[:-5], sent[-5:]], [sent[:60], sent[60:]]):
            for piece in pieces:
                connection.sendall(piece)
            assert hear(connection).code == 201
        connection.sendall(sent + message("GET", LEASES, more=offer + b"Connection: close\r\n"))
        answers = b""
        while piece := connection.recv(65536):
            answers += piece
    assert re.findall(rb"HTTP/1.1 ([0-9]+)", answers) == [b"201", b"200"]


def test_others_are_served_while_a_huge_document_is_read(api: Process) -> None:
    with connect(api.url) as slow, connect(api.url) as quick:
        slow.sendall(message("POST", LEASES, b"- 1\n" * 150_000, YAML))
        served = 0
        while not select.select([slow], [], [], 0)[0]:
            quick.sendall(message("GET", "/livez"))
            assert hear(quick).code == 200
            served += 1
        assert hear(slow).status["code"] == 400
    assert served > 5


async def test_a_head_that_does_not_end_is_hung_up_on(own_api: LeaseApiServer) -> None:
    lower(own_api, head_seconds=0.2)
    for part in (b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX: "):
        heard = await asyncio.to_thread(exchange, own_api.url, part)
        assert heard.code == 0


async def test_a_body_that_does_not_end_is_504(own_api: LeaseApiServer) -> None:
    lower(own_api, body_seconds=0.2)
    whole = message("POST", LEASES, b'{"metadata":{"name":"slow"}}')
    for part in (whole[:-28], whole[:-1]):
        heard = await asyncio.to_thread(exchange, own_api.url, part)
        assert heard.code == 504
        assert heard.status["reason"] == "Timeout"
        assert "connection: close" in heard.head


async def test_a_keep_alive_connection_outlives_the_limits(own_api: LeaseApiServer) -> None:
    lower(own_api, head_seconds=0.05, body_seconds=0.05)
    with await asyncio.to_thread(connect, own_api.url) as connection:
        for _ in range(3):
            request = message("POST", LEASES, b'{"metadata":{"generateName":"k-"}}')
            connection.sendall(request)
            assert (await asyncio.to_thread(hear, connection)).code == 201
            await asyncio.sleep(0.1)
