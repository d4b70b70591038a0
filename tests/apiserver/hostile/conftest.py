"""A Lease API that must serve others, whatever is sent to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiserver.clients import LEASES, Client, Process, lease
from tests.apiserver.codec.wire import Heard, exchange, message

BASE = f"{LEASES}/base"
YAML = "application/yaml"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
MIB = 1024 * 1024


@pytest.fixture(scope="package")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process(tmp_path_factory.mktemp("hostile") / "data") as process:
        client = Client(process.url)
        assert client.call("POST", LEASES, lease("base", leaseTransitions=3)).status == 201
        client.close()
        yield process
        assert "Traceback" not in process.log.read_text()


@pytest.fixture(autouse=True)
def others_are_served(api: Process) -> Iterator[None]:
    yield
    assert exchange(api.url, message("GET", BASE)).code == 200


def post(api: Process, body: bytes, kind: str = "application/json") -> Heard:
    return exchange(api.url, message("POST", LEASES, body, kind))


def patch(api: Process, body: bytes, kind: str) -> Heard:
    query = "?fieldManager=x&force=true" if kind == APPLY else ""
    return exchange(api.url, message("PATCH", BASE + query, body, kind))
