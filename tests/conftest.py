"""Fixtures and habits for every room."""

from __future__ import annotations

import pytest
from hypothesis import settings

from leases.history.read import change_density
from tests.support import processes
from tests.support.board import admin, board, guest, operator
from tests.support.forked import Forking
from tests.support.postgres import postgres

__all__ = ["admin", "board", "guest", "operator", "postgres"]

# How long an example takes says how busy the machine is.
settings.register_profile("leaseboard", deadline=None)
settings.load_profile("leaseboard")

processes.forking = Forking()


@pytest.fixture(autouse=True)
def _patient_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """How much of a strip is counted in time says how busy the machine is, too."""
    monkeypatch.setattr(change_density, "SECONDS", 60.0)
