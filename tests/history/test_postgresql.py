"""Every test of this folder once more, on PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.processes import ROOT


def test_the_same_tests_pass_on_postgresql(postgres):
    done = subprocess.run(
        # The database is not dropped, for which every connection would have to be closed: it goes
        # with its server.
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--reuse-db",
         "--ignore", __file__, str(Path(__file__).parent)],
        cwd=ROOT,
        env={**os.environ, "TEST_DATABASE_URL": postgres.database()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
