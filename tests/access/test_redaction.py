"""No line of the log holds a token."""

from __future__ import annotations

import logging
import sys
from importlib import import_module

import pytest

from dashboard import log_lines


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("Gone: /sign-in/abc-_D/", "Gone: /sign-in/[hidden]/"),
        ("Not Found: /sign-in/abc", "Not Found: /sign-in/[hidden]"),
        ('"GET /sign-in/abc/?next=/ HTTP/1.1" 410', '"GET /sign-in/[hidden]/?next=/ HTTP/1.1" 410'),
        ("Forbidden: /sign-in//abc/", "Forbidden: /sign-in//[hidden]/"),
        ("/c/a/wall/?q=x&key=secret&kind=lock", "/c/a/wall/?q=x&key=[hidden]&kind=lock"),
        ("/c/a/live/page/?key=secret", "/c/a/live/page/?key=[hidden]"),
        ("Not Found: /sign-in/link/", "Not Found: /sign-in/link/"),
        ("nothing to hide: key=value", "nothing to hide: key=value"),
    ],
)
def test_a_log_line_loses_its_tokens_and_nothing_else(said, written):
    assert log_lines.redact(said) == written


def test_the_log_of_another_programs_handler_loses_them_too():
    log_lines.redact_loggers("tests.access")
    heard: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())
    logger = logging.getLogger("tests.access")
    logger.addHandler(handler)
    logger.error('%s - "%s %s" %d', "::1", "GET", "/sign-in/abc/", 410)
    assert heard == ['::1 - "GET /sign-in/[hidden]/" 410']


def test_the_loggers_of_uvicorn_lose_them_whoever_starts_the_server():
    import_module("dashboard.asgi")
    for name in ("uvicorn.access", "uvicorn.error"):
        filters = logging.getLogger(name).filters
        assert any(isinstance(one, log_lines.RedactingFilter) for one in filters)


def test_a_traceback_in_the_log_loses_them_too():
    formatter = log_lines.RedactingFormatter("{message}", style="{")
    try:
        raise ValueError("/sign-in/abc/ broke")
    except ValueError:
        record = logging.getLogger("x").makeRecord(
            "x", logging.ERROR, __file__, 1, "failed", (), True
        )
        record.exc_info = sys.exc_info()
    assert "abc" not in formatter.format(record)
