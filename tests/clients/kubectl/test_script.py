"""Every command of commands.txt against a server, in order; each section in its own namespace."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver.clients import Process
from tests.clients.conftest import new_namespace
from tests.clients.kubectl.script import MANIFESTS, Command, Section, sections
from tests.clients.somebody import Somebody
from tests.support.processes import wait_for

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on this machine"),
]
SPEC = {"leaseDurationSeconds": 15, "renewTime": "2024-05-01T10:00:00.000001Z"}
START = (
    ("demo", {"app": "x", "tier": "web"}, {"holderIdentity": "me", "leaseTransitions": 3} | SPEC),
    ("other", {"app": "y"}, {"holderIdentity": "you"} | SPEC | {"leaseDurationSeconds": 8}),
)
# One for each way of asking: a list, a watch, an apply, an edit, a deletion. Each of the other
# sections says more of the same, and is long: kubectl takes 60 ms of a core to start.
SHORT = {
    "get prints every form", "get watches", "apply on the server side", "edit", "delete", "wait",
}  # fmt: skip
Run = Callable[[Command], str]
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def gated_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    gate = ("--feature-gates", "CoordinatedLeaderElection=true")
    with Process(tmp_path_factory.mktemp("gated") / "data", *gate) as process:
        yield process


@pytest.fixture
def run(section: Section, request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Runs a command where the manifests are; returns what is wrong with its answer."""
    gated = section.name.startswith("coordinated")
    api: Process = request.getfixturevalue("gated_api" if gated else "lease_api")
    namespace = new_namespace(api)
    somebody = Somebody(api.url, namespace)
    for name, labels, spec in START:
        body = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        assert somebody.client.call("POST", somebody.leases, body).status == 201
    somebody.close()
    kubeconfig = api.data / "kubeconfig"
    home = tmp_path / "home"
    shutil.copytree(MANIFESTS, home)
    event = home / "event.yaml"
    event.write_text(event.read_text().replace("NAMESPACE", namespace))
    config = yaml.safe_load(kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    (home / "kubeconfig").write_text(yaml.safe_dump(config))
    # What kubectl knows of a server is kept beside the kubeconfig of that server.
    more = {"HOME": str(api.data), "KUBECONFIG": str(home / "kubeconfig")}
    more |= {"TMPDIR": str(tmp_path), "GOGC": "off"}  # it ends before there is much to collect

    def run(command: Command) -> str:
        words = shlex.split(command.line.replace("<namespace>", namespace))
        environment = os.environ | more
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            environment[name] = value
        kept = words.pop() if len(words) > 2 and words[-2] == ">" else ""
        if kept:
            words.pop()
        watches = words[0] == "until"
        ends = partial(_ends_of_watch, command, namespace) if watches else _ends
        done = ends(["kubectl", *words[watches:]], env=environment, cwd=home)
        if kept:
            (home / kept).write_text(done.stdout)
        return _wrong(command, namespace, done)

    return run


def _ends(words: list[str], **more: Any) -> Done:
    return subprocess.run(
        words, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
        **more,
    )  # fmt: skip


def _ends_of_watch(
    command: Command, namespace: str, words: list[str], *, cwd: Path, **more: Any
) -> Done:
    """Kill a command that would go on for ever once it has printed what it must."""
    printed = cwd / "printed"
    with printed.open("w") as out, subprocess.Popen(words, stdout=out, cwd=cwd, **more) as watch:

        def said() -> Done | None:
            done = subprocess.CompletedProcess(words, watch.poll() or 0, printed.read_text(), "")
            return done if watch.poll() is None and not _wrong(command, namespace, done) else None

        try:
            return wait_for(said, what=command.line)
        except AssertionError:
            return subprocess.CompletedProcess(words, 1, printed.read_text(), "no such output")
        finally:
            watch.kill()


def _wrong(command: Command, namespace: str, done: Done) -> str:
    out, err = (" ".join(text.split()) for text in (done.stdout, done.stderr))
    wrong = [f"exit {done.returncode}"] if done.returncode != command.status else []
    wrong += [f"no out {text}" for text in command.out if _said(text, namespace) not in out]
    wrong += [f"no err {text}" for text in command.err if _said(text, namespace) not in err]
    wrong += [f"not is {text}" for text in command.whole if _said(text, namespace) != out]
    wrong += [f"has {text}" for text in command.absent if _said(text, namespace) in out + err]
    if not wrong:
        return ""
    return f"$ {command.line}\n{'; '.join(wrong)}\n{done.stdout[:2000]}{done.stderr[:2000]}"


def _said(text: str, namespace: str) -> str:
    return " ".join(text.replace("<namespace>", namespace).split())


def every_section() -> Iterator[Any]:
    for section in sections():
        marks = () if section.name in SHORT else pytest.mark.long
        yield pytest.param(section, id=section.name, marks=marks)


@pytest.mark.parametrize("section", list(every_section()))
def test_kubectl_answers_as_documented(section: Section, run: Run) -> None:
    wrong = [said for command in section.commands if (said := run(command))]
    assert not wrong, "\n".join(wrong)


def test_the_script_has_two_hundred_commands() -> None:
    assert sum(len(section.commands) for section in sections()) >= 200
    assert {section.name for section in sections()} > SHORT
