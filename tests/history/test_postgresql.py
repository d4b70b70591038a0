"""Every test of this folder once more, on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from tests.support.postgres import passes_on


def test_the_same_tests_pass_on_postgresql(postgres):
    passes_on(postgres, "--ignore", __file__, str(Path(__file__).parent))
