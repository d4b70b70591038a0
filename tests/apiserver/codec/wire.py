"""Bytes to the server and back, without a client that would repair them."""

from __future__ import annotations

import json
import socket
from typing import Any
from urllib.parse import urlsplit

from tests.apiserver.clients import ADMIN

LIMIT = 30


class Heard:
    """What came back: `code` is 0 when the server hung up without a word."""

    def __init__(self, data: bytes) -> None:
        head, _, self.body = data.partition(b"\r\n\r\n")
        self.head = head.decode("latin-1").lower()
        self.code = int(head.split(b" ", 2)[1]) if head else 0

    @property
    def status(self) -> dict[str, Any]:
        """The body, which must be a metav1.Status that says the same code."""
        found: dict[str, Any] = json.loads(self.body)
        assert (found["kind"], found["code"]) == ("Status", self.code)
        return found


def message(
    method: str, path: str, body: bytes = b"", kind: str = "application/json", more: bytes = b""
) -> bytes:
    """A request as the administrator sends it; `more` are further header lines."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    )
    return head.encode("latin-1") + more + b"\r\n" + body


def connect(url: str) -> socket.socket:
    where = urlsplit(url)
    return socket.create_connection((where.hostname, where.port), timeout=LIMIT)


def hear(connection: socket.socket) -> Heard:
    """One answer, with all of its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return Heard(data)
        data += piece
    pieces, missing = [data], _length(data) - len(data)
    while missing > 0 and (piece := connection.recv(1 << 20)):
        pieces.append(piece)
        missing -= len(piece)
    return Heard(b"".join(pieces))


def _length(data: bytes) -> int:
    head = data.partition(b"\r\n\r\n")[0]
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(head) + 4 + int(line.partition(b":")[2])
    return len(data)


def exchange(url: str, data: bytes) -> Heard:
    """One request on a connection of its own."""
    with connect(url) as connection:
        connection.sendall(data)
        return hear(connection)
