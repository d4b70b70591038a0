"""Log database statements that take long: without values, which may be secret."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper

from dashboard.access.log_lines.request_id import current

logger = logging.getLogger(__name__)

MAX_STATEMENT = 500  # characters of it in a line
_VALUE = re.compile(r"'(?:[^']|'')*'|(?<![\w$])\d+(?:\.\d+)?\b")


def time_statements(connection: BaseDatabaseWrapper, **_signal: Any) -> None:
    """Django calls this for each connection that it opens, also when it opens one again."""
    if _timed not in connection.execute_wrappers:
        connection.execute_wrappers.append(_timed)


def _timed(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    statement = _Statement(sql)
    if context["connection"].vendor == "sqlite":  # finds most of the rows while they are fetched
        cursor = context["cursor"]
        cursor.fetchall = statement.timing(cursor.fetchall)
        cursor.fetchmany = statement.timing(cursor.fetchmany)
    return statement.timing(execute)(sql, params, many, context)


class _Statement:
    """One statement, and how long its calls took together."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._took = 0.0  # milliseconds
        self._logged = False

    def timing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            begun = time.monotonic()
            try:
                return call(*arguments)
            finally:
                self._took += (time.monotonic() - begun) * 1000
                self._log_if_slow()

        return timed

    def _log_if_slow(self) -> None:
        if self._logged or self._took < settings.LEASEBOARD.slow_statement_ms:
            return
        self._logged = True
        request = f" (request {current.get()})" if current.get() else ""
        logger.warning("A statement took %.0f ms%s: %s", self._took, request, _shown(self._sql))


def _shown(sql: str) -> str:
    shown = " ".join(_VALUE.sub("?", str(sql)).split())
    return shown if len(shown) <= MAX_STATEMENT else f"{shown[:MAX_STATEMENT]}…"
