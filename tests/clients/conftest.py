"""One Lease API for the whole room, its kubeconfig with and without TLS, and a namespace a test."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.apiserver.clients import Client, Process
from tests.clients.somebody import Somebody


@pytest.fixture(autouse=True)
def leftovers() -> Iterator[None]:
    """Clients leave sockets of broken connections to the collector, which would tell of it in
    whatever test runs then. Ours are held to closing theirs everywhere else."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def lease_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process(tmp_path_factory.mktemp("clients") / "data") as process:
        yield process


@pytest.fixture
def secure(lease_api: Process) -> Path:
    """The kubeconfig as it was written: https, with the CA to trust."""
    return lease_api.data / "kubeconfig"


@pytest.fixture
def plain(secure: Path, lease_api: Process, tmp_path: Path) -> Path:
    """A kubeconfig for the same port without TLS."""
    config = yaml.safe_load(secure.read_text())
    config["clusters"][0]["cluster"] = {"server": lease_api.url}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture(params=["secure", "plain"])
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """Both, one after the other."""
    path: Path = request.getfixturevalue(request.param)
    return path


@pytest.fixture
def namespace(lease_api: Process) -> str:
    client = Client(lease_api.url)
    made = client.call("POST", "/api/v1/namespaces", {"metadata": {"generateName": "room-"}})
    client.close()
    name: str = made.json["metadata"]["name"]
    return name


@pytest.fixture
def somebody(lease_api: Process, namespace: str) -> Iterator[Somebody]:
    writer = Somebody(lease_api.url, namespace)
    yield writer
    writer.close()
