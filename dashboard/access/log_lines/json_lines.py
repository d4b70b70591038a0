"""Each log record as one line of JSON, without secrets."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import msgspec

from dashboard.access.log_lines.request_id import current
from dashboard.access.redaction import redact


class JsonFormatter(logging.Formatter):
    """`time`, `level`, `logger`, `message`; `request_id` and `error` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if current.get():
            line["request_id"] = current.get()
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info))
        return msgspec.json.encode(line).decode()
