"""Fixtures and habits for every room."""

from __future__ import annotations

from hypothesis import settings

from tests.postgres import postgres

__all__ = ["postgres"]

# How long an example takes says how busy the machine is.
settings.register_profile("leaseboard", deadline=None)
settings.load_profile("leaseboard")
