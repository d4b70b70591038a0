"""The golden cases recorded from kube-apiserver 1.36, replayed against a real server process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.apiserver.clients import Process
from tests.support.processes import ROOT

FOLDER = ROOT / "tests" / "conformance"
GATE = ("--feature-gates", "CoordinatedLeaderElection=true")
# With the gate on, these count versions or expect the gated fields to be dropped.
GATED = "spec/gated-fields-(dropped|strict)|discovery/group|http/methods"


@pytest.mark.parametrize(
    ("cases", "server", "options"),
    [
        ("cases", (), ()),
        ("cases", GATE, ("--skip", GATED)),
        ("cases-coordinated", GATE, ()),
    ],
    ids=["plain", "plain cases with the gate on", "coordinated"],
)
def test_the_server_answers_as_the_recorded_one(
    tmp_path: Path, cases: str, server: tuple[str, ...], options: tuple[str, ...]
) -> None:
    with Process(tmp_path / "data", *server) as api:
        replay = subprocess.run(
            [sys.executable, FOLDER / "replay.py", api.url, "--cases", FOLDER / cases, *options],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    summary = replay.stdout.splitlines()[-1]
    assert summary.endswith(" 0 failed"), replay.stdout + replay.stderr
    assert int(summary.split()[0]) > 200
