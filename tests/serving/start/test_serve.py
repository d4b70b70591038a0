"""`serve` as a process: what it prints, what it refuses, and how it ends."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing

import pytest

from tests.support.processes import Server, ended, free_port, get, manage, wait_for
from tests.support.signing_in import rows, signed_in


def test_the_printed_link_signs_in_once_and_the_demo_moves(tmp_path):
    with ended(Server(tmp_path / "data", bare=True)) as server:
        browser = signed_in(server)
        first = wait_for(lambda: rows(browser, server, "embedded"), what="Leases on the page")
        wait_for(
            lambda: rows(browser, server, "embedded") != first, what="the list to move by itself"
        )
        status, text = get(server.printed("Sign in"))
        assert status == 410
        assert "has been used" in text
        assert get(server.printed("Wall"))[0] == 200
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
    kept = [path for path in server.data.iterdir() if path.is_file()]
    assert kept
    assert [path for path in kept if path.stat().st_mode & 0o077] == []


@pytest.mark.parametrize(
    ("arguments", "extra", "sentence"),
    [
        (["--cluster", "a=ftp://x"], {}, "write embedded, in-cluster"),
        (["--cluster", "a"], {}, "write 'a' as NAME=SOURCE"),
        (["--cluster", "a=in-cluster"], {}, "in-cluster works only inside a pod"),
        (["--cluster", "a=context:nowhere"], {"KUBECONFIG": "/nonexistent"}, "no kubeconfig at"),
        ([], {"LEASEBOARD_HTTPS": "maybe"}, "LEASEBOARD_HTTPS cannot be 'maybe'"),
        ([], {"LEASEBOARD_RETENTION_DAYS": "-1"}, "LEASEBOARD_RETENTION_DAYS cannot be '-1'"),
        ([], {"LEASEBOARD_DATABSE_URL": "x"}, "LEASEBOARD_DATABSE_URL is not a setting"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_one(tmp_path, arguments, extra, sentence):
    done = manage(tmp_path / "data", "serve", *arguments, **extra)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("option", ["--port", "--api-port"])
def test_a_port_in_use_is_named_with_the_way_out(tmp_path, option):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        other = "--api-port" if option == "--port" else "--port"
        done = manage(tmp_path / "data", "serve", option, str(port), other, str(free_port()))
    assert done.returncode == 1
    assert f"Cannot listen on 127.0.0.1 port {port}" in done.stderr
    assert option in done.stderr
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
