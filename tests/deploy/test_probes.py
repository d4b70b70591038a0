"""What comes by an address is answered: the kubelet's probes, the image's check, Prometheus.

The server has the settings of the shipped ConfigMap, whose hosts lack every address.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clients.presence import absent
from tests.deploy.shipped import pod_of, rendered, steps
from tests.support.processes import Server, free_port, get, serving, wait_for

TOKEN = "scraped-with-this"
SHOWN_PORT = 8000  # in the manifests and in the image


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = rendered("postgresql")["ConfigMap/leaseboard"]["data"]
    settings = {
        **data,
        "LEASEBOARD_CLUSTERS": "embedded=embedded,gone=url:http://127.0.0.1:9",
        "LEASEBOARD_METRICS_TOKEN": TOKEN,
        "LEASEBOARD_DRAIN_SECONDS": "0",
    }
    assert "127.0.0.1" not in settings["LEASEBOARD_ALLOWED_HOSTS"]
    with serving(tmp_path_factory.mktemp("probed") / "data", **settings) as one:
        yield one


@pytest.mark.parametrize("probe", ["startupProbe", "livenessProbe", "readinessProbe"])
def test_the_kubelet_gets_200_by_the_address_of_the_pod(server, probe):
    (container,) = pod_of("postgresql")["containers"]
    asked = container[probe]["httpGet"]
    headers = {one["name"]: one["value"] for one in asked.get("httpHeaders", [])}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", asked["path"], headers={"Host": f"10.1.2.3:{SHOWN_PORT}"} | headers)
    answer = connection.getresponse()
    assert (answer.status, answer.read()[:2]) == (200, b"ok")
    connection.close()
    assert get(f"{server.url}/")[0] == 400


def test_the_image_finds_itself_healthy(server):
    check = next(rest for word, rest in steps()[-1] if word == "HEALTHCHECK")
    command = json.loads(check.partition("CMD ")[2])
    command = [sys.executable, *(word.replace(str(SHOWN_PORT), str(server.port))
                                 for word in command[1:])]  # fmt: skip
    subprocess.run(command, check=True, timeout=60, capture_output=True)


def scrape_of(monitor: dict[str, Any], server: Server) -> dict[str, Any]:
    """What the operator writes for Prometheus; the Secret's token stands for its name."""
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["authorization"]["credentials"] == {
        "name": "leaseboard", "key": "LEASEBOARD_METRICS_TOKEN",
    }  # fmt: skip
    return {
        "job_name": "leaseboard",
        "metrics_path": endpoint["path"],
        "scrape_interval": "1s",
        "authorization": {"credentials": TOKEN},
        "static_configs": [{"targets": [f"127.0.0.1:{server.port}"]}],
    }


@pytest.fixture
def prometheus(server: Server, tmp_path: Path) -> Iterator[str]:
    """A Prometheus that scrapes the server; its address."""
    if shutil.which("prometheus") is None:
        absent("prometheus")
    monitor = rendered("sqlite with prometheus-operator")["ServiceMonitor/leaseboard"]
    config = tmp_path / "prometheus.yaml"
    config.write_text(yaml.safe_dump({"scrape_configs": [scrape_of(monitor, server)]}))
    listens = f"127.0.0.1:{free_port()}"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}",
             f"--web.listen-address={listens}"],
            stdout=log, stderr=log, env=os.environ | {"GOMAXPROCS": "1"},
        )  # fmt: skip
    try:
        yield f"http://{listens}"
    finally:
        process.kill()
        process.wait()


def test_prometheus_scrapes_by_address(server, prometheus):
    def asked() -> list[dict[str, Any]]:
        status, text = get(f"{prometheus}/api/v1/targets?state=active")
        targets = json.loads(text)["data"]["activeTargets"] if status == 200 else []
        # On a busy machine an answer may take longer than the second between two scrapes.
        slow = "deadline exceeded"
        return [x for x in targets if x["health"] != "unknown" and slow not in x["lastError"]]

    (target,) = wait_for(asked, what="a first scrape")
    assert (target["health"], target["lastError"]) == ("up", "")

    def synced() -> dict[str, str]:
        _, text = get(f"{prometheus}/api/v1/query?query=leaseboard_synced")
        found = {one["metric"]["cluster"]: one["value"][1]
                 for one in json.loads(text)["data"]["result"]}  # fmt: skip
        return found if found.get("embedded") == "1" else {}

    assert wait_for(synced, what="the embedded cluster") == {"embedded": "1", "gone": "0"}
