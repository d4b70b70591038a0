"""An embedded Lease API in the test's own event loop, or as a process of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from leases.apiserver.serving import LeaseApiServer
from tests.apiserver.clients import Client, Process, make_tokens


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LeaseApiServer]:
    data = tmp_path / "data"
    make_tokens(data)
    server = LeaseApiServer(data=data)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server that the tests of one module share."""
    with Process(tmp_path_factory.mktemp("api") / "data") as process:
        yield process
        assert "Traceback" not in process.log.read_text()


@pytest.fixture(scope="module")
def client(process: Process) -> Iterator[Client]:
    """The administrator's connection to that server."""
    client = Client(process.url)
    yield client
    client.close()
