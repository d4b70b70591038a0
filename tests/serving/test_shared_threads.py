"""Nothing of ours uses the threads that everything would share, and the end waits for none."""

from __future__ import annotations

import gzip
import json
import signal
import urllib.request

import pytest

from tests.support.api_client import LeaseApi, leases
from tests.support.processes import Server, ended, get, wait_for
from tests.support.programs.receivers import by_http, by_mail, make_receivers
from tests.support.signing_in import signed_in

PROGRAM = ("-m", "tests.serving.serve_without_shared_threads")
PAGES = ("", "leases/", "nodes/", "holders/", "timeline/", "history/", "history/?format=ndjson",
         "incidents/", "reliability/", "wall/")  # fmt: skip


def gzipped(api):
    request = urllib.request.Request(
        f"{api.url}{leases()}",
        headers={"Authorization": f"Bearer {api.token}", "Accept-Encoding": "gzip"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        return json.loads(gzip.decompress(answer.read()))


def test_a_process_that_refuses_them_does_all_its_work(tmp_path):
    clusters = ("--cluster", "own=embedded", "--cluster", "other=url:http://localhost:9")
    with ended(Server(tmp_path / "data", *clusters, program=PROGRAM)) as server:
        api = LeaseApi(server.kubeconfig)
        api.url = server.api_url
        large = {"metadata": {"name": "large", "annotations": {"a": "x" * 200_000}}, "spec": {}}
        api.send("POST", leases(), large)
        assert gzipped(api)["items"]
        make_receivers(
            tmp_path / "data",
            {"hook": by_http(9, "localhost"), "mail": by_mail(9, "localhost")},
        )
        browser = signed_in(server)
        for page in PAGES:
            with browser.open(f"{server.url}/c/own/{page}", timeout=60) as answer:
                assert answer.status == 200
                answer.read()
        assert get(f"{server.url}/static/none.css")[0] == 404
        assert get(f"{server.url}/no-such-page")[0] == 404
        wait_for(
            lambda: "'mail' did not take" in server.text and "'hook' did not take" in server.text,
            what="both receivers to be tried",
        )
        wait_for(lambda: "Cannot reach" in server.text, what="the other cluster to be tried")
        assert server.interrupt() == 0
        assert "SHARED THREADS" not in server.text


@pytest.mark.parametrize(
    ("hangs", "number"), [("threads", signal.SIGTERM), ("loop", signal.SIGINT)]
)
def test_the_end_waits_for_nothing_that_hangs(tmp_path, hangs, number):
    """How long it may take is measured by tests/benchmarks/hostile_world.py."""
    with ended(Server(tmp_path / "data", "--no-demo", program=PROGRAM, HANG=hangs)) as server:
        if hangs == "threads":
            wait_for(lambda: "HANGS: nodes" in server.text, what="a pool to hang")
        server.process.send_signal(number)
        assert server.process.wait(timeout=60) == 0
        if hangs == "loop":
            assert "did not end in time after a signal" in server.text
