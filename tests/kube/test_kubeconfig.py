"""Several kubeconfig files as one: what kubectl makes of the same files is what we make of them."""

from __future__ import annotations

import base64
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from leases.kube.cluster_source import files_of, merged, parse_source
from leases.kube.connect import connect
from tests.kube.conftest import FAST
from tests.support.following import list_whole
from tests.support.scripted_api import ScriptedServer

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl")

ONE = """
current-context: ""
contexts:
- {name: home, context: {cluster: k, user: u}}
clusters:
- {name: k, cluster: {server: "http://127.0.0.1:9", certificate-authority: ca.crt}}
users:
- {name: u, user: {tokenFile: token, client-certificate: ../client.crt}}
"""
TWO = """
current-context: away
contexts:
- {name: home, context: {cluster: k2, user: u2}}
- {name: away, context: {cluster: k, user: u2}}
clusters:
- {name: k, cluster: {server: "http://127.0.0.1:10", insecure-skip-tls-verify: true}}
- {name: k2, cluster: {server: "http://127.0.0.1:10", certificate-authority: ca.crt}}
users:
- {name: u2, user: {token: two, client-key: client.key}}
- {name: u, user: {token: other}}
"""
THREE = "current-context: home\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Three files in folders of their own, an empty one and one that is missing."""
    texts = {"one": ONE, "two": TWO, "three": THREE, "empty": "# nothing yet\n"}
    (tmp_path / "client.crt").write_text("certificate")
    found = {"missing": tmp_path / "missing"}
    for name, text in texts.items():
        folder = tmp_path / name
        folder.mkdir()
        for beside in ("ca.crt", "client.key", "token"):
            (folder / beside).write_text(f"{beside} of {name}")
        found[name] = folder / "config"
        found[name].write_text(text)
    return found


@needs_kubectl
@pytest.mark.parametrize("order", [*itertools.permutations(["one", "two", "three"])])
def test_files_are_merged_as_kubectl_merges_them(
    files: dict[str, Path], order: tuple[str, ...]
) -> None:
    paths = tuple(files[name] for name in ("missing", order[0], "empty", *order[1:]))
    assert _flat(merged(paths)) == _by_kubectl(paths, "--flatten")


@needs_kubectl
@pytest.mark.parametrize("order", [("one", "two"), ("two", "one"), ("three", "one", "two")])
async def test_the_current_context_is_the_one_that_kubectl_would_use(
    files: dict[str, Path], order: tuple[str, ...]
) -> None:
    paths = tuple(files[name] for name in order)
    (cluster,) = _by_kubectl(paths, "--minify", "--flatten")["clusters"].values()
    client = await connect(parse_source("embedded"), kubeconfig=paths)
    assert client.host == cluster["server"]


async def test_a_token_beside_the_second_file_is_sent(
    cluster: ScriptedServer, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(f"token of {name}")
    (tmp_path / "a" / "config").write_text(
        "contexts: [{name: c, context: {cluster: k, user: u}}]\ncurrent-context: c"
    )
    (tmp_path / "b" / "config").write_text(
        f"clusters: [{{name: k, cluster: {{server: '{cluster.url}'}}}}]\n"
        "users: [{name: u, user: {tokenFile: token}}]\ncurrent-context: other"
    )
    paths = (tmp_path / "a" / "config", tmp_path / "b" / "config")
    client = await connect(parse_source("context:c"), kubeconfig=paths, limits=FAST)
    await list_whole(client)
    await client.close()
    assert cluster.requests[0].headers["authorization"] == "Bearer token of b"


async def test_a_plugin_beside_the_file_gives_the_token(
    cluster: ScriptedServer, tmp_path: Path
) -> None:
    version = "client.authentication.k8s.io/v1"
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f"#!{sys.executable}\nimport json\n"
        f"print(json.dumps({{'apiVersion': '{version}', 'kind': 'ExecCredential',"
        " 'status': {'token': 'from-plugin'}}))\n"
    )
    plugin.chmod(0o700)
    path = tmp_path / "config"
    path.write_text(
        "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
        f"clusters: [{{name: k, cluster: {{server: '{cluster.url}'}}}}]\n"
        f"users: [{{name: u, user: {{exec: {{apiVersion: {version}, command: ./plugin}}}}}}]\n"
    )
    client = await connect(parse_source("context:c"), kubeconfig=path, limits=FAST)
    await list_whole(client)
    await client.close()
    assert cluster.requests[0].headers["authorization"] == "Bearer from-plugin"


@pytest.mark.parametrize(
    "text",
    [
        "users: [{name: u, user: {token: canary",
        "users: [{name: u, user: canary}]",
        "users: [canary]",
        "users: {token: canary}",
        "users:\n- canary: [\n  canary",
        "canary: \x01",
        "[" * 5000,
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_not_repeated(
    files: dict[str, Path], text: str
) -> None:
    files["two"].write_text(text)
    with pytest.raises(ValueError, match="is no kubeconfig that can be read") as raised:
        merged((files["one"], files["two"]))
    assert str(files["two"]) in str(raised.value)
    assert "canary" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_folder_and_a_binary_file_are_named(files: dict[str, Path]) -> None:
    with pytest.raises(ValueError, match=r"is no kubeconfig .*: is a directory\."):
        merged((files["one"].parent,))
    files["one"].write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="it is not YAML"):
        merged((files["one"],))


def test_the_variable_names_files_from_here_and_from_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    said = os.pathsep.join(["", "here", "~/there", "/else/where", ""])
    assert files_of(said) == (tmp_path / "here", tmp_path / "home" / "there", Path("/else/where"))


def _by_kubectl(paths: tuple[Path, ...], *options: str) -> dict[str, Any]:
    done = subprocess.run(
        ["kubectl", "config", "view", "--raw", *options],
        env={**os.environ, "KUBECONFIG": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        check=True,
    )
    return _by_name(yaml.safe_load(done.stdout), paths)


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """As `--flatten` shows it: what certificate files hold in place of their names."""
    for entry in (*config["clusters"], *config["users"]):
        body = entry.get("cluster") or entry["user"]
        for key in ("certificate-authority", "client-certificate", "client-key"):
            if key in body:
                text = Path(body.pop(key)).read_bytes()
                body[f"{key}-data"] = base64.b64encode(text).decode()
    return _by_name(config, ())


def _by_name(config: dict[str, Any], paths: tuple[Path, ...]) -> dict[str, Any]:
    """Entries by name; kubectl writes a tokenFile relative to the file that says it."""
    found: dict[str, Any] = {"current-context": config["current-context"]}
    for plural, singular in (("clusters", "cluster"), ("contexts", "context"), ("users", "user")):
        found[plural] = {entry["name"]: dict(entry[singular]) for entry in config[plural]}
    for body in found["users"].values():
        if (token := body.get("tokenFile")) and not Path(token).is_absolute():
            home = next(path.parent for path in paths if "tokenFile" in _text(path))
            body["tokenFile"] = str(home / token)
    return found


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
