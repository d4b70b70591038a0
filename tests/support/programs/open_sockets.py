"""A server, people with rights in it, and the sockets that they open."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.support.processes import Server

FEED, PAGE = "changes", "page"


Kind = tuple[str, dict[str, Any]]


class House:
    """A server, people who may look, and a database that others write too."""

    def __init__(self, server: Server, people: dict[str, dict[str, Any]]) -> None:
        self.server = server
        self.people = people

    def end(self, sql: str, who: dict[str, Any]) -> None:
        with closing(sqlite3.connect(self.server.data / "leaseboard.sqlite3")) as database:
            for statement in sql.split(";"):
                database.execute(statement, who)
            database.commit()

    async def open(self, kind: Kind, who: dict[str, Any]) -> ClientConnection:
        """A socket of this kind that has sent something."""
        path, show = kind
        query = f"?key={who['key']}" if "key" in who else ""
        headers = {"Cookie": who["cookie"]} if "cookie" in who else {}
        if "token" in who:
            headers["Authorization"] = f"Bearer {who['token']}"
        url = f"{self.server.url}/c/embedded/live/{path}/{query}".replace("http", "ws", 1)
        socket = await connect(url, additional_headers=headers, compression=None)
        if path == PAGE:
            await socket.send(json.dumps(show))
        await socket.recv()
        return socket


def said_by(error: ConnectionClosed) -> tuple[int, str]:
    assert error.rcvd is not None, "the connection broke"
    return error.rcvd.code, error.rcvd.reason


async def closing_of(socket: ClientConnection) -> tuple[int, str]:
    """With what code and words the server closes the socket."""
    try:
        async with asyncio.timeout(60):
            while True:
                await socket.recv()
    except ConnectionClosed as error:
        return said_by(error)
