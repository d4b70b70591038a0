"""An embedded Lease API in the test's own event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from leases.apiserver.serving import LeaseApiServer
from tests.apiserver.clients import make_tokens


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LeaseApiServer]:
    data = tmp_path / "data"
    make_tokens(data)
    server = LeaseApiServer(data=data)
    await server.start()
    yield server
    await server.stop()
