from __future__ import annotations

import pytest

from leases.listener import protocol


@pytest.fixture(autouse=True)
def _refused_clients_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "READ_SECONDS", 0.1)
