"""Limits that a test need not wait for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from leases.apiserver.serving import LeaseApiServer


def lower(api: LeaseApiServer, **limits: Any) -> None:
    """For connections from now on."""
    assert api._server is not None
    book = api._server.server_state.book
    book.limits = replace(book.limits, **limits)
