"""A running server shows nobody the secrets of its settings: no page, probe, frame or log line.

And what anybody may send, such as another host's name, costs it one line.
"""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.support.every_url import every_page
from tests.support.processes import Server, serving, wait_for
from tests.support.signing_in import Opener, cookie_keeper, press_button

CANARY = "canary-1f7a9b"


@pytest.fixture(scope="module")
def pages(tmp_path_factory, postgres):
    """Leaseboard with a secret in every setting that can hold one, and who is signed in to it."""
    url = postgres.database()
    settings = {
        "LEASEBOARD_DATABASE_URL": url.replace("@", f":{CANARY}@"),
        "LEASEBOARD_SECRET_KEY": f"{CANARY}{'x' * 32}",
        "LEASEBOARD_METRICS_TOKEN": CANARY,
        "LEASEBOARD_CLUSTERS": (
            f"a=url:http://{CANARY}@127.0.0.1:9,b=url:https://{CANARY}@127.0.0.1:9/base"
        ),
    }
    data = tmp_path_factory.mktemp("canary") / "data"
    with serving(data, **settings) as server:
        browser = cookie_keeper()
        press_button(browser, server.printed("Sign in"))
        yield server, browser, url


def read(browser: Opener, url: str | urllib.request.Request) -> tuple[int, str]:
    try:
        with browser.open(url, timeout=60) as answer:
            return answer.status, f"{answer.headers}{answer.read().decode()}"
    except urllib.error.HTTPError as error:
        return error.code, f"{error.headers}{error.read().decode()}"


def sent(server: Server, method: str, path: str, host: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_no_page_shows_a_secret(pages):
    server, browser, _ = pages
    wait_for(lambda: "connection refused" in read(browser, f"{server.url}/c/a/")[1], what="a look")
    for page in every_page():
        status, text = read(browser, server.url + page.path)
        assert status in (200, 401, 404, 405, 409, 410, 503), page
        assert CANARY not in text, page
    status, text = read(browser, f"{server.url}/readyz")
    assert status == 200
    assert "connection refused" in text
    assert CANARY not in text


@pytest.mark.parametrize("host", ["elsewhere.example", "a b", "x" * 20_000, "[::1", "\u202e"])
def test_another_host_is_400_in_a_sentence_and_one_line_of_the_log(pages, host):
    server, _, _ = pages
    before = len(server.text.splitlines())
    status, text = sent(server, "GET", "/c/a/", host.encode("utf-8").decode("latin-1"))
    assert status == 400
    assert "Leaseboard does not answer to the host name of this address" in text
    assert re.search(r"LEASEBOARD_ALLOWED_HOSTS", text)
    lines = server.text.splitlines()[before:]
    about = [line for line in lines if "DisallowedHost" in line or "Traceback" in line]
    assert len(about) == 1, lines
    assert len(about[0]) < 500


def test_head_is_answered_with_the_same_length_and_no_body(pages):
    server, _, _ = pages
    for path in ("/healthz", "/sign-in/", "/static/icon.svg"):
        status, text = sent(server, "HEAD", path, f"127.0.0.1:{server.port}")
        assert (status, text) in ((200, ""), (404, "")), path


def test_an_unreachable_database_logs_no_secret(pages, postgres):
    """The last test here: the database takes no connection any more."""
    server, browser, url = pages
    name = url.rpartition("/")[2]
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute("UPDATE pg_database SET datallowconn = false WHERE datname = %s", [name])
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        connection.execute(end, [name])
    # Without a database only the metrics' token may know more.
    wait_for(
        lambda: "database: " in read(browser, _probe(server, CANARY))[1],
        what="the process to notice",
    )
    # Each waits some seconds for a connection, so all wait at the same time.
    paths = ("/c/a/", "/c/a/history/", "/audit/", "/metrics", "/wall-links/")
    with ThreadPoolExecutor() as pool:
        answers = {path: pool.submit(read, browser, server.url + path) for path in paths}
        stranger = urllib.request.build_opener()
        probes = {
            word: pool.submit(read, stranger, _probe(server, word)) for word in (CANARY, "no")
        }
    for word, probe in probes.items():
        status, text = probe.result()
        assert status == 200
        assert ("database: " in text) == (word == CANARY)
        assert CANARY not in text
    for path, page in answers.items():
        status, text = page.result()
        assert status in (200, 401, 503), path
        assert CANARY not in text, path
    assert server.interrupt() == 0
    assert CANARY not in server.text


def _probe(server: Server, token: str) -> urllib.request.Request:
    return urllib.request.Request(
        f"{server.url}/readyz", headers={"Authorization": f"Bearer {token}"}
    )
