"""Tokens are made and revoked while the server runs; each role may do its part and no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.clients import LEASES, Client, Process, lease
from tests.processes import manage


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process(tmp_path_factory.mktemp("tokens") / "data") as process:
        yield process


def status(api: Process, token: str | None, method: str = "GET", path: str = LEASES) -> int:
    client = Client(api.url, token)
    body = lease("made") if method == "POST" else None
    found = client.call(method, path, body).status
    client.close()
    return found


def test_a_token_works_at_once_until_it_is_revoked(api: Process) -> None:
    value = "a-good-long-value"
    assert status(api, value) == 401
    made = manage(
        api.data, "lease_tokens", "create", "--name", "r", "--role", "read", "--token", value
    )
    assert made.returncode == 0, made.stderr
    assert status(api, value) == 200
    assert status(api, value, "POST") == 403
    assert manage(api.data, "lease_tokens", "revoke", "r").returncode == 0
    assert status(api, value) == 401


def test_a_value_that_is_left_out_is_made_and_printed_once(api: Process) -> None:
    made = manage(api.data, "lease_tokens", "create", "--name", "w", "--role", "write")
    value = made.stdout.splitlines()[-1]
    assert status(api, value, "POST") == 201
    listed = manage(api.data, "lease_tokens", "list").stdout
    assert "w\twrite" in listed
    assert value not in listed
    assert value.encode() not in (api.data / "lease_api.sqlite3").read_bytes()


def test_nobody_reads_health_only(api: Process) -> None:
    assert status(api, None, path="/livez") == 200
    assert status(api, None) == 403
    assert status(api, None, path="/apis") == 403


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("create", "--name", "x", "--role", "boss"), "write none, read, write"),
        (("create", "--name", "x"), "--role"),
        (("create", "--name", " ", "--role", "read"), "--name cannot be blank"),
        (("create", "--name", "x", "--role", "read", "--token", "short"), "at least 8 characters"),
        (("create", "--name", "admin", "--role", "read"), "revoke it first"),
        (("revoke", "stranger"), "lease_tokens list"),
        (("frob",), "create"),
    ],
)
def test_bad_input_gets_one_sentence(api: Process, arguments: tuple[str, ...], told: str) -> None:
    done = manage(api.data, "lease_tokens", *arguments)
    assert done.returncode == 1
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_files_are_for_their_owner_only(api: Process) -> None:
    for name in ("lease_api.sqlite3", "kubeconfig", "lease_api.key"):
        assert (api.data / name).stat().st_mode & 0o077 == 0, name


def test_a_taken_port_gets_one_sentence(api: Process, tmp_path: Path) -> None:
    port = api.url.rpartition(":")[2]
    done = manage(tmp_path / "other", "lease_api", "--port", port)
    assert done.returncode == 1
    assert "choose another --port" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
