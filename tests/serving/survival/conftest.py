"""A Lease API that outlives the servers that are killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.clients import Process


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Process]:
    with Process(tmp_path / "api") as process:
        yield process
