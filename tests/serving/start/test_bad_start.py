"""Commands that cannot start say so in one sentence without a secret and exit with 1."""

from __future__ import annotations

import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from leases.apiserver.http.port import CannotStart
from leases.apiserver.serving import check_data
from tests.support.processes import free_port, manage, prepare
from tests.support.programs.prepared import DATABASE, STATIC, begin_with, prepared

CANARY = "canary-1f7a9b"
CIRCLE = b"a link to itself"
URL = "LEASEBOARD_DATABASE_URL"
UNREACHABLE = f"postgresql://u:{CANARY}@127.0.0.1:9/x"


class Case:
    """What is in the data directory (a name with its bytes, None for a folder, CIRCLE for a link to
    itself), what is run, and what must be said."""

    def __init__(self, said: str, *command: str, there: dict[str, bytes | None] | None = None,
                 data: str = "", **settings: str) -> None:  # fmt: skip
        self.said = said
        self.command = command or ("serve",)
        self.there = there or {}
        self.data = data
        self.settings = settings

    @property
    def has_history(self) -> bool:
        """Whether database and static files may be there: to make them takes seconds of a core."""
        others = {DATABASE, "../data"} & set(self.there)
        return self.command[0] == "serve" and not (self.data or others or URL in self.settings)

    def run(self, folder: Path) -> tuple[int, str]:
        data = Path(self.data or folder / "data")
        if self.has_history:
            begin_with(prepared(prepare), data)
            if STATIC in self.there:
                (data / STATIC).unlink()
        lay(self.there, folder / "data")
        ports = ("--port", str(free_port()), "--api-port", str(free_port()))
        arguments = self.command + (ports if self.command == ("serve",) else ())
        done = manage(data, *arguments, **self.settings)
        return done.returncode, done.stdout + done.stderr


def lay(there: dict[str, bytes | None], data: Path) -> None:
    for name, content in there.items():
        place = (data / name).resolve()
        place.parent.mkdir(parents=True, exist_ok=True)
        if content == CIRCLE:
            place.symlink_to(place)
            continue
        place.mkdir() if content is None else place.write_bytes(content)


_KEY = ec.generate_private_key(ec.SECP256R1())
A_KEY, LOCKED_KEY = (
    _KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked)
    for locked in (NoEncryption(), BestAvailableEncryption(CANARY.encode()))
)
GARBAGE = b"SQLite format 3\0" + b"garbage" * 1000
API_ALONE = ("lease_api", "--port", "0")
CASES = {
    "data is a file": Case("(it is a file)", there={"../data": b"x"}),
    "data cannot be made": Case("LEASEBOARD_DATA cannot be '/proc/x/y'", data="/proc/x/y"),
    "data cannot be written": Case("LEASEBOARD_DATA cannot be '/proc'", *API_ALONE, data="/proc"),
    "secret key is empty": Case("secret_key holds fewer than 32", there={"secret_key": b""}),
    "secret key is short": Case(
        "secret_key holds fewer than 32", "migrate", there={"secret_key": CANARY.encode()}
    ),
    "secret key is no text": Case(
        "secret_key cannot be read (it is not text)", "export_history",
        there={"secret_key": b"\xff" + CANARY.encode() * 9},
    ),
    "history is garbage": Case("is not a database", there={"leaseboard.sqlite3": GARBAGE}),
    "export of nothing": Case("leaseboard.sqlite3 is empty (no such table", "export_history"),
    "database is not there": Case("Connection refused", **{URL: UNREACHABLE}),
    "migrate without database": Case("Connection refused", "migrate", **{URL: UNREACHABLE}),
    "database refuses its options": Case(
        "invalid sslmode value", "migrate", **{URL: f"{UNREACHABLE}?sslmode={CANARY}"}
    ),
    "objects are garbage": Case("begin with no Leases", there={"lease_api.sqlite3": GARBAGE}),
    "objects are garbage, alone": Case(
        "begin with no Leases", *API_ALONE, there={"lease_api.sqlite3": GARBAGE}
    ),
    "tokens are garbage": Case(
        "begin with no Leases", "lease_tokens", "create", "--name", "n", "--role", "read",
        "--token", CANARY, there={"lease_api.sqlite3": GARBAGE},
    ),
    "API certificate is garbage": Case(
        "is no certificate for its key", there={"lease_api.crt": GARBAGE, "lease_api.key": A_KEY}
    ),
    "kubeconfig is a folder": Case("cannot be used", *API_ALONE, there={"kubeconfig": None}),
    "static files cannot be": Case("Static files cannot be put into", there={"static": b"x"}),
    "history is a circle": Case("unable to open", there={"leaseboard.sqlite3": CIRCLE}),
    "wall link is no text": Case("(it is not text)", there={"wall_link": b"\xff\xfe"}),
    "wall link is a circle": Case("symbolic links", there={"wall_link": CIRCLE}),
    "no port is left": Case("choose one with --api-port", "serve", "--port", "65535"),
    "host is nobody's": Case("is no address of this machine", "serve", "--host", "é" * 300),
    "only read: a cluster that is not watched": Case(
        "LEASEBOARD_READ_ONLY names 'prod', which is not watched: write true, or names among",
        LEASEBOARD_READ_ONLY="embedded,prod",
    ),
    "only read: of clusters that are chosen here": Case(
        "LEASEBOARD_READ_ONLY names 'embedded', which is not watched: write true, or names among a",
        "serve", "--cluster", "a=url:http://127.0.0.1:9", LEASEBOARD_READ_ONLY="embedded",
    ),
    "cluster has a token": Case(
        "write embedded", "serve", "--cluster", f"a=url:ftp://{CANARY}@h"
    ),
    "settings have a token": Case(
        "[hidden]@h", "lease_tokens", "list", LEASEBOARD_CLUSTERS=f"a=url:https://{CANARY}@h:x"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Every case run once, two at a time: a start takes a second of a core."""
    folders = {name: tmp_path_factory.mktemp("start") for name in CASES}
    with ThreadPoolExecutor(2) as pool:
        runs = {name: pool.submit(CASES[name].run, folders[name]) for name in CASES}
        yield {name: run.result() for name, run in runs.items()}
    for folder in folders.values():
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("name", CASES)
def test_an_impossible_start_is_one_sentence_and_exit_code_1(results, name):
    code, text = results[name]
    assert CASES[name].said in text
    assert code == 1
    assert len(text.strip().splitlines()) == 1, text
    assert "Traceback" not in text
    if name != "database refuses its options":  # which are no secret
        assert CANARY not in text


KEYS = {
    "no key": ("cannot be used without its key", {"lease_api.crt": GARBAGE}),
    "empty": ("lease_api.key is no private key", {"lease_api.key": b""}),
    "a password": ("without a password", {"lease_api.key": LOCKED_KEY, "lease_api.crt": b""}),
    "a folder": ("lease_api.key cannot be used", {"lease_api.key": None}),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_key_that_cannot_be_used_is_one_sentence(tmp_path, name):
    """As of the certificate that is garbage, where `serve` says it."""
    said, there = KEYS[name]
    lay(there, tmp_path)
    with pytest.raises(CannotStart) as refused:
        check_data(tmp_path)
    text = str(refused.value)
    assert said in text
    assert len(text.splitlines()) == 1
    assert CANARY not in text


def test_a_port_in_use_is_named_by_the_api_alone_too(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = manage(tmp_path, "lease_api", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "address already in use" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
