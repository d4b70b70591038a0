"""The lifespan of the process, as uvicorn drives it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboard.config import ConfigError
from dashboard.serving import runtime
from dashboard.serving.data_directory import NewerDatabase
from leases.apiserver.http.port import CannotStart


class Server:
    """The server's end of the lifespan: two messages in, the answers out."""

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    async def receive(self) -> dict[str, str]:
        self._calls.append("received")
        return {}

    async def send(self, message: dict[str, str]) -> None:
        self._calls.append(message["type"])


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    for name in ("choose_memory", "bound_connections", "check_database", "close_connections"):
        monkeypatch.setattr(runtime, name, lambda name=name: found.append(name))
    return found


async def test_the_lifespan_opens_the_pool_runs_and_closes_in_order(calls, monkeypatch):
    class Running:
        async def stop(self) -> None:
            calls.append("stopped")

    async def launch() -> Running:
        calls.append("launched")
        return Running()

    monkeypatch.setattr(runtime, "launch", launch)
    server = Server(calls)
    await runtime.lifespan({}, server.receive, server.send)
    assert calls == [
        "received", "choose_memory", "bound_connections", "check_database", "launched",
        "lifespan.startup.complete", "received", "stopped", "close_connections",
        "lifespan.shutdown.complete",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "error", [CannotStart("a"), ConfigError("b"), NewerDatabase("c"), OSError("d"), KeyError("e")]
)
async def test_a_start_that_fails_is_logged_and_ends_the_server(calls, monkeypatch, caplog, error):
    async def launch() -> None:
        raise error

    monkeypatch.setattr(runtime, "launch", launch)
    server = Server(calls)
    await runtime.lifespan({}, server.receive, server.send)
    assert calls == [
        "received", "choose_memory", "bound_connections", "check_database", "close_connections",
        "lifespan.startup.failed",
    ]  # fmt: skip
    assert "Leaseboard cannot start" in caplog.text
    assert ("Traceback" in caplog.text) is isinstance(error, KeyError)


def test_a_misspelt_cluster_that_is_only_read_stops_the_start_under_any_server(settings):
    settings.LEASEBOARD = replace(settings.LEASEBOARD, read_only=("prod",))
    with pytest.raises(ConfigError, match=r"^LEASEBOARD_READ_ONLY names 'prod'"):
        runtime._from_settings()
