"""What asks the database, once more on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from tests.support.postgres import passes_on

HERE = Path(__file__).parent


def test_the_same_tests_pass_on_postgresql(postgres):
    names = (
        "rights/test_rights_watch.py",
        "rights/test_rights_reader.py",
        "people/test_people.py",
        "test_strangers.py",
    )
    passes_on(postgres, *(str(HERE / name) for name in names))
