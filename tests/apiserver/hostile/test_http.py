"""Paths, methods, headers and bytes that are odd or no HTTP at all."""

from __future__ import annotations

import re

import pytest

from tests.apiserver.clients import LEASES, Process
from tests.apiserver.codec.wire import connect, exchange, hear, message
from tests.apiserver.hostile.conftest import MIB


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
        (f"{LEASES}/..", 400),
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
def test_bytes_that_are_no_http_are_refused_in_plain_text(api: Process, data: bytes) -> None:
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
