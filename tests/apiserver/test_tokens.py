"""Tokens are made and revoked while the server runs; each role may do its part and no more."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.management.commands.lease_tokens import Command
from leases.apiserver.auth import Tokens
from leases.wire.status import Unauthorized
from tests.apiserver.clients import ADMIN, LEASES, Client, Process, lease
from tests.support.processes import manage

UNAUTHORIZED = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "Unauthorized",
    "reason": "Unauthorized",
    "code": 401,
}
SUBJECT = 'leases.coordination.k8s.io{name} is forbidden: User "{user}" cannot {verb} resource '
WHERE = '"leases" in API group "coordination.k8s.io" in the namespace "default"'


VERBS = [
    ("create", "POST", LEASES, lease("one")),
    ("get", "GET", f"{LEASES}/one", None),
    ("list", "GET", LEASES, None),
    ("update", "PUT", f"{LEASES}/one", lease("one")),
    ("patch", "PATCH", f"{LEASES}/one", {}),
    ("delete", "DELETE", f"{LEASES}/one", None),
    ("deletecollection", "DELETE", LEASES, None),
]
KINDS = {"PATCH": "application/merge-patch+json"}


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


def test_an_unknown_token_is_401_with_a_short_status(api: Process) -> None:
    client = Client(api.url, "nobody-knows-this")
    for path in (LEASES, "/apis", "/version", "/livez"):
        answer = client.call("GET", path)
        assert (answer.status, answer.json) == (401, UNAUTHORIZED), path
    client.close()


@pytest.mark.parametrize("role", ["none", "read", "write"])
def test_each_role_may_do_its_part_and_gets_403_for_the_rest(api: Process, role: str) -> None:
    user, value = f"user-{role}", f"{role}-token-value"
    tokens = Tokens(api.data)
    tokens.create(user, role, value)
    tokens.close()
    client = Client(api.url, value)
    wanted = {"none": set(), "read": {"get", "list"}, "write": {verb for verb, *_ in VERBS}}[role]
    for verb, method, path, body in VERBS:
        answer = client.call(method, path, body, content_type=KINDS.get(method, "application/json"))
        if verb in wanted:
            assert answer.status != 403, (verb, answer.text)
            continue
        named = ' "one"' if path.endswith("/one") else ""
        text = SUBJECT.format(name=named, user=user, verb=verb) + WHERE
        expected = (answer.status, answer.json["reason"], answer.json["message"])
        assert expected == (403, "Forbidden", text)
    client.close()


def test_every_token_is_compared_and_each_in_constant_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = Tokens(tmp_path)
    for at in range(5):
        tokens.create(f"user-{at}", "read", f"token-value-{at}")
    plainly = hmac.compare_digest
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return plainly(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert tokens.user("Bearer token-value-0").name == "user-0"
    assert len(compared) == 5
    with pytest.raises(Unauthorized):
        tokens.user("Bearer token-value-")
    assert len(compared) % 5 == 0
    assert {len(text) for pair in compared for text in pair} == {32}
    tokens.close()


def test_a_token_can_be_made_before_the_first_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    arguments = ("create", "--name", "early", "--role", "read", "--token", "early-token")
    assert manage(data, "lease_tokens", *arguments).returncode == 0
    with Process(data) as process:
        assert status(process, "early-token") == 200


def test_nobody_reads_health_only(api: Process) -> None:
    assert status(api, None, path="/livez") == 200
    assert status(api, None) == 403
    assert status(api, None, path="/apis") == 403


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("create", "--name", "x", "--role", "boss"), "write none, read, write"),
        (("create", "--name", "x"), "--role"),
        (("create", "--name", " ", "--role", "read"), "--name cannot be blank"),
        (("create", "--name", "x", "--role", "read", "--token", "short"), "at least 8 characters"),
        (("create", "--name", "admin", "--role", "read"), "revoke it first"),
        (("create", "--name", "y", "--role", "read", "--token", ADMIN), "revoke it first"),
        (("revoke", "stranger"), "lease_tokens list"),
        (("frob",), "create"),
    ],
)
def test_bad_input_gets_one_sentence(
    api: Process,
    arguments: tuple[str, ...],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LEASEBOARD_DATA", str(api.data))
    with pytest.raises(SystemExit) as ended:
        Command().run_from_argv(["manage.py", "lease_tokens", *arguments])
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert expected in said
    assert len(said.strip().splitlines()) == 1


def test_the_files_are_for_their_owner_only(api: Process) -> None:
    for name in ("lease_api.sqlite3", "kubeconfig", "lease_api.key"):
        assert (api.data / name).stat().st_mode & 0o077 == 0, name


def test_a_taken_port_gets_one_sentence(api: Process, tmp_path: Path) -> None:
    port = api.url.rpartition(":")[2]
    done = manage(tmp_path / "other", "lease_api", "--port", port)
    assert done.returncode == 1
    assert "choose another --port" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
