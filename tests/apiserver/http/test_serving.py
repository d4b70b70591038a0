"""The server as its host sees it: ports, files, TLS, a clean end."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import signal
import ssl
import urllib.request
from pathlib import Path

import pytest
import yaml

from leases.apiserver.serving import LeaseApiServer
from tests.apiserver.clients import LEASES, lease
from tests.apiserver.watch.streams import call


async def test_a_taken_port_is_an_oserror_and_leaves_nothing_open(
    api: LeaseApiServer, tmp_path: Path
) -> None:
    port = int(api.url.rpartition(":")[2])
    other = LeaseApiServer(data=tmp_path / "other", port=port)
    with pytest.raises(OSError, match="in use"):
        await other.start()
    await other.stop()


async def test_it_leaves_signals_and_logging_alone(tmp_path: Path) -> None:
    handler = signal.getsignal(signal.SIGINT)
    loggers = list(logging.getLogger("uvicorn").handlers)
    server = LeaseApiServer(data=tmp_path / "data")
    await server.start()
    assert signal.getsignal(signal.SIGINT) is handler
    assert logging.getLogger("uvicorn").handlers == loggers
    await server.stop()


async def test_it_starts_again_in_the_same_loop_with_the_same_token(tmp_path: Path) -> None:
    data = tmp_path / "data"
    texts = []
    for _ in range(2):
        server = LeaseApiServer(data=data)
        await server.start()
        config = yaml.safe_load(server.kubeconfig.read_text())
        texts.append(
            (config["users"], config["clusters"][0]["cluster"]["certificate-authority-data"])
        )
        await server.stop()
    assert texts[0] == texts[1]


async def test_the_kubeconfig_opens_the_api_over_tls(api: LeaseApiServer) -> None:
    config = yaml.safe_load(api.kubeconfig.read_text())
    assert config["current-context"] == "leaseboard"
    cluster = config["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    token = config["users"][0]["user"]["token"]
    asked = urllib.request.Request(
        f"{cluster['server']}/apis/coordination.k8s.io/v1/leases",
        headers={"Authorization": f"Bearer {token}"},
    )

    def fetch() -> dict[str, object]:
        with urllib.request.urlopen(asked, context=context, timeout=60) as answer:
            found: dict[str, object] = json.load(answer)
            return found

    assert (await asyncio.to_thread(fetch))["kind"] == "LeaseList"


async def test_an_object_that_is_too_large_is_refused_and_nothing_is_stored(
    api: LeaseApiServer,
) -> None:
    expected = await call(api.url, "POST", LEASES, lease("big", holderIdentity="x" * 1_600_000))
    assert expected["code"] == 500
    assert "too large" in expected["message"]
    assert (await call(api.url, "GET", f"{LEASES}/big"))["code"] == 404


async def test_the_longest_holder_that_kube_apiserver_takes_fits(api: LeaseApiServer) -> None:
    made = await call(
        api.url,
        "POST",
        LEASES,
        {"metadata": {"name": "a"}, "spec": {"holderIdentity": "x" * 1_572_649}},
    )
    assert made["kind"] == "Lease"
