"""The golden cases recorded from kube-apiserver 1.36, replayed against a real server process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.apiserver.clients import Process
from tests.support.processes import ROOT

FOLDER = ROOT / "tests" / "conformance"
GATE = ("--feature-gates", "CoordinatedLeaderElection=true")
# These answers hold the recorded server's own address, which has its port, and its build.
OF_THAT_SERVER = {"http2/paths [34]", "http2/paths [37]"}


@pytest.mark.parametrize(
    ("cases", "server"),
    [("cases", ()), ("cases-coordinated", GATE)],
    ids=["plain", "coordinated"],
)
def test_the_server_answers_as_the_recorded_one(
    tmp_path: Path, cases: str, server: tuple[str, ...]
) -> None:
    lines = replayed(tmp_path, cases, server)
    assert lines[-1].endswith(" 0 failed"), lines
    assert int(lines[-1].split()[0]) > 200


def test_the_harder_cases_differ_only_in_what_another_server_cannot_have(tmp_path: Path) -> None:
    lines = replayed(tmp_path, "cases-2")
    failed = re.findall(r"^FAIL (\S+ \[\d+\])", "\n".join(lines), re.MULTILINE)
    assert set(failed) == OF_THAT_SERVER, lines
    assert lines[-1] == "981 passed, 2 failed"


def replayed(tmp_path: Path, cases: str, server: tuple[str, ...] = ()) -> list[str]:
    """What the replay prints: a line for each exchange that differs, and the sum."""
    with Process(tmp_path / "data", *server) as api:
        replay = subprocess.run(
            [sys.executable, FOLDER / "replay.py", api.url, "--cases", FOLDER / cases],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    return [*replay.stderr.splitlines(), *replay.stdout.splitlines()]
