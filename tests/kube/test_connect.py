"""SOURCE to client: what is allowed, and what is said about what is not."""

from __future__ import annotations

import asyncio
import base64
import ssl
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from msgspec.structs import replace

from leases.apiserver.serving import LeaseApiServer
from leases.kube.cluster_source import ClusterSource, SourceKind, parse_source
from leases.kube.connect import _from_kubeconfig, connect
from leases.wire.status import Unreachable
from tests.kube.conftest import FAST
from tests.support.following import list_whole
from tests.support.scripted_api import ScriptedServer

TWO_CONTEXTS = """
apiVersion: v1
kind: Config
current-context: home
contexts:
- {name: home, context: {cluster: k, user: u}}
- {name: away, context: {cluster: lost, user: u}}
clusters:
- {name: k, cluster: {server: "http://127.0.0.1:9/"}}
users:
- {name: u, user: {token: secret}}
"""


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("embedded", ClusterSource(SourceKind.EMBEDDED)),
        ("in-cluster", ClusterSource(SourceKind.IN_CLUSTER)),
        ("context:kind-dev", ClusterSource(SourceKind.CONTEXT, "kind-dev")),
        ("context:arn:aws:eks:x", ClusterSource(SourceKind.CONTEXT, "arn:aws:eks:x")),
        ("url:http://127.0.0.1:8001/", ClusterSource(SourceKind.URL, "http://127.0.0.1:8001")),
        ("url:https://k8s/prefix", ClusterSource(SourceKind.URL, "https://k8s/prefix")),
    ],
)
def test_each_form_of_a_source_is_read_and_written(text: str, source: ClusterSource) -> None:
    assert parse_source(text) == source
    assert parse_source(str(source)) == source


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kind",
        "embedded:x",
        "in-cluster:",
        "context",
        "context:",
        "url:",
        "url:x",
        "url:ftp://x",
        "url:http://",
        "url:http://x/?a=b",
        "url:http://a b",
    ],
)
def test_anything_else_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(ValueError, match="is no source of a cluster: write embedded, in-cluster"):
        parse_source(text)


async def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="There is no kubeconfig at .*nowhere"):
        await connect(parse_source("context:x"), kubeconfig=tmp_path / "nowhere")


async def test_an_unknown_context_is_answered_with_those_there_are(tmp_path: Path) -> None:
    path = _write(tmp_path, TWO_CONTEXTS)
    with pytest.raises(
        ValueError, match=r"There is no context 'x' in .*; those there are: away, home"
    ):
        await connect(parse_source("context:x"), kubeconfig=path)


async def test_a_context_whose_cluster_is_missing_is_incomplete(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Context 'away' in .* is incomplete: .*lost"):
        await connect(parse_source("context:away"), kubeconfig=_write(tmp_path, TWO_CONTEXTS))


@pytest.mark.parametrize("text", ["contexts: [", "just words", "- a\n- b", "contexts: 7"])
async def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match="is no kubeconfig that can be read"):
        await connect(parse_source("context:x"), kubeconfig=_write(tmp_path, text))


async def test_a_kubeconfig_without_contexts_has_none_to_offer(tmp_path: Path) -> None:
    for text in ("contexts: [{}]", ""):
        with pytest.raises(ValueError, match="those there are: none"):
            await connect(parse_source("context:x"), kubeconfig=_write(tmp_path, text))


async def test_embedded_is_the_current_context_of_its_kubeconfig(tmp_path: Path) -> None:
    path = _write(tmp_path, TWO_CONTEXTS)
    client = await connect(parse_source("embedded"), kubeconfig=path)
    assert client.host == "http://127.0.0.1:9"


async def test_without_a_path_the_default_place_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'other'}:{_write(tmp_path, TWO_CONTEXTS)}")
    client = await connect(parse_source("context:home"), kubeconfig=None)
    assert client.host == "http://127.0.0.1:9"
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ValueError, match=r"\.kube/config"):
        await connect(parse_source("context:home"), kubeconfig=None)


async def test_in_cluster_outside_of_one_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ValueError, match="in-cluster works only inside a pod"):
        await connect(parse_source("in-cluster"), kubeconfig=None)


async def test_a_refused_connection_says_what_to_check() -> None:
    client = await connect(parse_source("url:http://127.0.0.1:9"), kubeconfig=None, limits=FAST)
    with pytest.raises(Unreachable) as raised:
        await list_whole(client)
    await client.close()
    assert str(raised.value) == (
        "Cannot reach http://127.0.0.1:9: connection refused. Check that the API server runs."
    )


async def test_a_token_file_may_end_in_a_newline(cluster: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    path = _with_user(tmp_path, cluster, "tokenFile: token")
    client = await connect(parse_source("embedded"), kubeconfig=path, limits=FAST)
    await list_whole(client)
    await client.close()
    assert cluster.requests[0].headers["authorization"] == "Bearer from-file"


async def test_an_exec_plugin_gives_the_token(cluster: ScriptedServer, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    version = "client.authentication.k8s.io/v1"
    plugin.write_text(
        "import json\n"
        f"print(json.dumps({{'apiVersion': '{version}', 'kind': 'ExecCredential',"
        " 'status': {'token': 'from-plugin'}}))\n"
    )
    user = f"exec: {{apiVersion: {version}, command: '{sys.executable}', args: ['{plugin}']}}"
    path = _with_user(tmp_path, cluster, user)
    client = await connect(parse_source("embedded"), kubeconfig=path, limits=FAST)
    await list_whole(client)
    await client.close()
    assert cluster.requests[0].headers["authorization"] == "Bearer from-plugin"


VERSION = "client.authentication.k8s.io/v1"


def _with_plugin(folder: Path, cluster: str, script: str, command: str = sys.executable) -> Path:
    plugin = folder / "plugin.py"
    plugin.write_text(f"import json, sys\n{script}\n")
    user = f"{{apiVersion: {VERSION}, command: '{command}', args: ['{plugin}']}}"
    return _write(
        folder,
        "contexts: [{name: c, context: {cluster: k, user: u}}]\ncurrent-context: c\n"
        f"clusters: [{{name: k, cluster: {{server: '{cluster}'}}}}]\n"
        f"users: [{{name: u, user: {{exec: {user}}}}}]\n",
    )


def _answer(**status: str) -> str:
    given = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
    return f"print(json.dumps({given!r}))"


@pytest.mark.parametrize(
    ("command", "script", "said"),
    [
        ("no-such-plugin", "", "is not installed where Leaseboard runs. Install it there"),
        (sys.executable, "sys.exit('who?')", "failed (exec: process returned 1. who?). Run it"),
        (sys.executable, "print('no JSON')", "failed (exec: failed to decode process output"),
        (sys.executable, _answer(), "gave neither a token nor a certificate"),
        (sys.executable, _answer(clientCertificateData="x"), "gave neither a token nor"),
    ],
)
async def test_an_exec_plugin_that_gives_nothing_is_named(
    cluster: ScriptedServer, tmp_path: Path, command: str, script: str, said: str
) -> None:
    """Nothing is sent, so no cluster answers that `system:anonymous` may not list."""
    path = _with_plugin(tmp_path, cluster.url, script, command)
    client = await connect(parse_source("embedded"), kubeconfig=path, limits=FAST)
    with pytest.raises(Unreachable) as failed:
        await list_whole(client)
    await client.close()
    assert f"Cannot use {path}: its exec plugin '{command}' " in str(failed.value)
    assert said in str(failed.value)
    assert cluster.requests == []


def test_an_exec_plugin_gives_a_certificate(tmp_path: Path) -> None:
    script = _answer(clientCertificateData="a certificate", clientKeyData="its key")
    path = _with_plugin(tmp_path, "https://127.0.0.1:9", script)
    configure, _ = _from_kubeconfig((path,), "")
    configuration = asyncio.run(cast("Any", configure()))
    assert Path(str(configuration.cert_file)).read_text() == "a certificate"
    assert Path(str(configuration.key_file)).read_text() == "its key"


async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    cluster: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    client = await connect(parse_source(f"url:{cluster.url}"), kubeconfig=None, limits=FAST)
    assert (await list_whole(client)).resource_version == "100"
    await client.close()


async def test_no_credentials_are_left_in_the_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = LeaseApiServer(data=tmp_path / "data")
    await api.start()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    config = yaml.safe_load(api.kubeconfig.read_text())
    for name, file in (("certificate", "lease_api.crt"), ("key", "lease_api.key")):
        pem = (tmp_path / "data" / file).read_bytes()
        config["users"][0]["user"][f"client-{name}-data"] = base64.b64encode(pem).decode()
    path = _write(tmp_path, yaml.safe_dump(config))
    limits = replace(FAST, renew=0.0)
    client = await connect(parse_source("embedded"), kubeconfig=path, limits=limits)
    await list_whole(client)
    known = client._session._api
    assert list((tmp_path / "tmp").iterdir()) == []
    assert await client._session._renew() is known  # the same certificates keep its connections
    await list_whole(client)
    assert list((tmp_path / "tmp").iterdir()) == []
    await client.close()
    await api.stop()


def _write(folder: Path, text: str) -> Path:
    path = folder / "kubeconfig"
    path.write_text(text)
    return path


def _with_user(folder: Path, cluster: ScriptedServer, user: str) -> Path:
    text = (
        "current-context: c\n"
        "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
        f"clusters: [{{name: k, cluster: {{server: '{cluster.url}'}}}}]\n"
        f"users: [{{name: u, user: {{{user}}}}}]\n"
    )
    return _write(folder, text)


async def test_clusters_over_http_share_what_the_system_trusts_and_no_connection(
    cluster: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading it takes 25 ms and 0.8 MiB for each."""
    first, *others = [
        await connect(parse_source(f"url:{cluster.url}"), kubeconfig=None, limits=FAST)
        for _ in range(3)
    ]
    await list_whole(first)
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: pytest.fail("read again"))
    for client in others:
        await list_whole(client)
    await first.close()
    for client in others:
        assert (await list_whole(client)).resource_version == "100"
        await client.close()
