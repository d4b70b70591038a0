"""Where `serve` and `sign_in_link` print a link that signs in, and where that link leads."""

from __future__ import annotations

import os
import pty
import re
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.processes import (
    Server,
    environment,
    fill,
    free_port,
    get,
    manage,
    serving,
    start_python,
    wait_for,
)
from tests.support.signing_in import cookie_keeper, press_button

QUIET = {"LEASEBOARD_PRINT_LINKS": "terminal"}  # the default
SECRET = re.compile(r"/sign-in/[\w-]{40,}|key=")


def made_links(server: Server) -> list[tuple[str]]:
    with closing(sqlite3.connect(server.data / "leaseboard.sqlite3")) as history:
        return history.execute(
            "SELECT digest FROM leases_signinlink UNION SELECT digest FROM leases_walllink"
        ).fetchall()


def test_a_log_holds_no_link_that_signs_in_and_says_how_to_get_one(tmp_path):
    with serving(tmp_path / "data", "--no-demo", **QUIET) as server:
        server.wait_synced()
        assert not SECRET.search(server.text)
        assert made_links(server) == []
        assert f"python3 manage.py sign_in_link admin --port {server.port} " in server.text
        assert server.printed("Wall") == f"{server.url}/wall-links/"
        done = manage(server.data, "sign_in_link", "admin", "--port", str(server.port), **QUIET)
        assert (done.returncode, done.stderr) == (0, "")
        link = done.stdout.splitlines()[-1]
        browser = cookie_keeper()
        press_button(browser, link)
        with browser.open(f"{server.url}/security-log/?format=json", timeout=60) as answer:
            assert "sign-in link for admin, printed by sign_in_link" in answer.read().decode()
        assert get(link)[0] == 410


def test_a_terminal_shows_the_links(tmp_path):
    fill(tmp_path / "data")
    ours, theirs = pty.openpty()
    port = free_port()
    with os.fdopen(theirs, "w") as terminal:
        process = start_python(
            "manage.py", "serve", "--no-demo", "--port", str(port), "--api-port", str(free_port()),
            env=environment(tmp_path / "data", **QUIET), stdout=terminal, stderr=terminal,
        )  # fmt: skip
    text = ""

    def printed() -> str:
        nonlocal text
        text += os.read(ours, 65_536).decode()
        return text if "Stop  " in text else ""

    try:
        wait_for(printed, what="the greeting")
        sign_in = re.search(r"^Sign in +(\S+)", text, re.MULTILINE)
        wall = re.search(r"^Wall +(\S+)", text, re.MULTILINE)
        assert sign_in is not None
        assert wall is not None
        wait_for(lambda: get(f"http://127.0.0.1:{port}/healthz")[0] == 200, what="the port")
        press_button(cookie_keeper(), sign_in[1])
        assert get(wall[1])[0] == 200
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        os.close(ours)


def test_links_lead_to_the_public_address(tmp_path):
    public = {"LEASEBOARD_URL": "https://leases.example.com"}
    with serving(tmp_path / "data", "--no-demo", **public) as server:
        for label in ("Leaseboard", "Sign in", "Wall"):
            assert server.printed(label).startswith("https://leases.example.com/")
        done = manage(server.data, "sign_in_link", "admin", **public)
        assert done.stdout.splitlines()[-1].startswith("https://leases.example.com/sign-in/")


def test_a_database_that_outlives_the_container_gets_one_wall_link(tmp_path, postgres):
    shared = {"LEASEBOARD_DATABASE_URL": postgres.database()}
    with serving(tmp_path / "first", "--no-demo", **shared) as server:
        assert get(server.printed("Wall"))[0] == 200
    with serving(tmp_path / "second", "--no-demo", **shared) as server:
        assert server.printed("Wall") == f"{server.url}/wall-links/"
        press_button(cookie_keeper(), server.printed("Sign in"))


def test_a_name_that_no_account_has_is_one_sentence(tmp_path: Path) -> None:
    fill(tmp_path / "data")
    done = manage(tmp_path / "data", "sign_in_link", "\u202e")
    assert done.returncode == 1
    assert "There is no active account" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    done = manage(tmp_path / "empty", "sign_in_link", "admin")
    assert "run serve once" in done.stderr
