"""One Lease API for the whole room, its kubeconfig with and without TLS, and a namespace a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.clients import Client, Process
from tests.clients.kubeconfigs import without_tls
from tests.clients.somebody import Somebody


@pytest.fixture(scope="session")
def lease_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process(tmp_path_factory.mktemp("clients") / "data") as process:
        yield process


@pytest.fixture
def secure(lease_api: Process) -> Path:
    """The kubeconfig as it was written: https, with the CA to trust."""
    return lease_api.data / "kubeconfig"


@pytest.fixture
def plain(lease_api: Process, tmp_path: Path) -> Path:
    """A kubeconfig for the same port without TLS."""
    return without_tls(lease_api, tmp_path / "kubeconfig")


@pytest.fixture(params=["secure", "plain"])
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """Both, one after the other."""
    path: Path = request.getfixturevalue(request.param)
    return path


@pytest.fixture
def namespace(lease_api: Process) -> str:
    return new_namespace(lease_api)


def new_namespace(api: Process) -> str:
    client = Client(api.url)
    made = client.call("POST", "/api/v1/namespaces", {"metadata": {"generateName": "room-"}})
    client.close()
    name: str = made.json["metadata"]["name"]
    return name


@pytest.fixture
def somebody(lease_api: Process, namespace: str) -> Iterator[Somebody]:
    writer = Somebody(lease_api.url, namespace)
    yield writer
    writer.close()
