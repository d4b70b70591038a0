"""`serve` as a process: what it prints, what it refuses, and how it ends."""

from __future__ import annotations

import platform
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from dashboard.management.refusing import pages_port
from tests.support.board import member
from tests.support.private_files import everybody_may_read, open_to_others
from tests.support.processes import (
    ROOT,
    Server,
    ended,
    environment,
    free_port,
    get,
    manage,
    wait_for,
)
from tests.support.signing_in import rows, signed_in


def test_the_printed_link_signs_in_once_the_demo_moves_and_files_are_private(tmp_path):
    with everybody_may_read():
        begun = Server(tmp_path / "data", bare=True)
    with ended(begun) as server:
        browser = signed_in(server)
        first = wait_for(lambda: rows(browser, server, "embedded"), what="Leases on the page")
        wait_for(
            lambda: rows(browser, server, "embedded") != first, what="the list to move by itself"
        )
        status, text = get(server.printed("Sign in"))
        assert status == 410
        assert "has been used" in text
        assert get(server.printed("Wall"))[0] == 200
        names = {path.name for path in server.data.iterdir()}
        assert {"leaseboard.sqlite3-wal", "leaseboard.sqlite3-shm", "static"} <= names
        assert open_to_others(server.data) == []
        assert server.interrupt() == 0
    assert "Traceback" not in server.text
    with closing(sqlite3.connect(server.data / "leaseboard.sqlite3")) as history:
        printed = history.execute(
            "SELECT who, about FROM leases_securityrecord WHERE event = 'link_created' ORDER BY id"
        ).fetchall()
    assert printed == [
        ("manage.py", "wall link of embedded, printed by serve"),
        ("manage.py", "sign-in link for admin, printed by serve"),
    ]
    assert open_to_others(server.data) == []


ARENA = 64 << 20  # bytes that glibc reserves for one: some are in use, the others are not


def arenas_of_threads(pid: int) -> int:
    """How many there are beside the one heap of the process."""
    lines = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    spans = [tuple(int(end, 16) for end in line[0].split("-")) for line in lines]
    return sum(
        spans[place][0] % ARENA == 0 and spans[place + 1][1] - spans[place][0] == ARENA
        for place in range(len(lines) - 1)
        if lines[place][1:] == ["rw-p", "00000000", "00:00", "0"] and lines[place + 1][1] == "---p"
    )


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no arenas")
def test_all_threads_share_one_heap(tmp_path):
    with ended(Server(tmp_path / "data")) as server:
        browser = signed_in(server)
        wait_for(lambda: rows(browser, server, "embedded"), what="Leases on the page")
        assert len(list(Path(f"/proc/{server.process.pid}/task").iterdir())) > 5
        assert arenas_of_threads(server.process.pid) == 0


PARTS = """
import django, sys
django.setup()
import dashboard.serving.runtime, dashboard.urls
print([name for name in ("psycopg", "psycopg_pool") if name in sys.modules])
"""


def test_what_only_postgresql_needs_takes_no_memory_with_sqlite(tmp_path):
    settings = environment(tmp_path, DJANGO_SETTINGS_MODULE="dashboard.settings")
    command = [sys.executable, "-c", PARTS]
    printed = subprocess.check_output(command, cwd=ROOT, env=settings, text=True, timeout=60)
    assert printed == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "extra", "sentence"),
    [
        (["--cluster", "a=in-cluster"], {}, "in-cluster works only inside a pod"),
        (["--cluster", "a=context:nowhere"], {"KUBECONFIG": "/nonexistent"}, "no kubeconfig at"),
        ([], {"LEASEBOARD_HTTPS": "maybe"}, "LEASEBOARD_HTTPS cannot be 'maybe'"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_one(tmp_path, arguments, extra, sentence):
    done = manage(tmp_path / "data", "serve", *arguments, **extra)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("option", ["--api-port", "PORT"])
def test_a_port_in_use_is_named_with_the_way_out(tmp_path, option):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        other = "--port" if option == "--api-port" else "--api-port"
        given = () if option == "PORT" else (option, str(port))
        of_environment = {"PORT": str(port if option == "PORT" else free_port())}
        done = manage(tmp_path / "data", "serve", *given, other, str(free_port()), **of_environment)
    assert done.returncode == 1
    assert f"Cannot listen on 127.0.0.1 port {port}" in done.stderr
    assert ("--port" if option == "PORT" else option) in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("serve", "--port", "x"), "argument --port: 'x' is no port"),
        (("serve", "--feature-gates", "Foo=true"), "'Foo' is no gate"),
        (("export_history", "--format", "xml"), "invalid choice: 'xml'"),
    ],
)
def test_a_bad_option_is_one_sentence_and_exit_code_1(arguments, said, tmp_path):
    done = manage(tmp_path, *arguments)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_port_of_the_environment_counts_where_none_is_given(monkeypatch):
    for given, of_environment, port in (
        (None, "", 8000),
        (None, "9123", 9123),
        (8124, "9123", 8124),
        (8124, "tcp://10.0.0.1", 8124),
    ):
        monkeypatch.setenv("PORT", of_environment)
        assert pages_port(given) == port
    monkeypatch.setenv("PORT", "tcp://10.0.0.1")
    said = r"PORT of the environment: 'tcp://10.0.0.1' is no port; write .*, or give --port\."
    with pytest.raises(CommandError, match=said):
        pages_port(None)


@pytest.mark.django_db
def test_a_printed_link_leads_to_the_port_of_the_environment(monkeypatch, capsys):
    monkeypatch.setenv("PORT", "9123")
    member("ada", "admin")
    call_command("sign_in_link", "ada")
    assert "http://127.0.0.1:9123/sign-in/" in capsys.readouterr().out
