"""A runtime that watches nothing, and people to look at it."""

from __future__ import annotations

from tests.support.board import admin, board, guest, operator

__all__ = ["admin", "board", "guest", "operator"]
