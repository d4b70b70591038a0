"""Where Leaseboard cannot run, `manage.py` says so in one sentence, before it imports anything."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.processes import ROOT

START = """
import runpy, sys
{change}
runpy.run_path("manage.py", run_name="__main__")
"""
NO_MODULES = ["-S", "-E"]  # without site-packages: as on a machine where nothing was installed


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("sys.platform = 'win32'", "does not run on Windows itself: run it in WSL"),
        (
            "sys.version_info = (3, 10, 12, 'final', 0)",
            "needs Python 3.11 or newer, and this is 3.10.12",
        ),
        ("", "Django is missing: run python3 -m venv .venv"),
    ],
)
def test_what_cannot_work_is_one_sentence_and_exit_code_1(change, sentence):
    done = subprocess.run(
        [sys.executable, *NO_MODULES, "-c", START.format(change=change)],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )  # fmt: skip
    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_first_command_of_the_readme_needs_no_right_to_install_into_the_system():
    """deploy/try_quick_start.sh runs it."""
    text = (ROOT / "README.md").read_text().partition("## Quick start")[2]
    command = next(line.strip() for line in text.splitlines() if line.startswith("    "))
    makes, enters, installs, starts = command.split(" && ")
    assert makes == "python3 -m venv .venv"
    assert enters == ". .venv/bin/activate"
    assert f"{installs} && {starts}" in text.replace(command, "")
