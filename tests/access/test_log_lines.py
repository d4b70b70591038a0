"""Log lines as JSON, with the id of the request that caused them."""

from __future__ import annotations

import json
import logging
import re
import sys
from dataclasses import replace

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection

from dashboard.access.drawing_gate import drawing_gate
from dashboard.config import ConfigError, load
from dashboard.log_lines import (
    JsonFormatter,
    RedactingFilter,
    RedactingFormatter,
    _timed,
    answer_with_id,
    cluster_at_work,
    current,
    hide,
)
from dashboard.serving.request_threads import OneThreadPages, TooBusy


def line_of(message: str, *arguments: object, error: bool = False) -> dict[str, str]:
    info = sys.exc_info() if error else None
    record = logging.LogRecord("dashboard.x", 30, "x.py", 1, message, arguments, info)
    found: dict[str, str] = json.loads(JsonFormatter().format(record))
    return found


def test_a_line_is_one_object_and_holds_no_secret():
    hide('canary-"-41')
    try:
        raise ValueError('lost canary-"-41')
    except ValueError:
        line = line_of("two\nlines of %s", 'canary-"-41', error=True)
    assert line["message"] == "two\nlines of [hidden]"
    assert (line["level"], line["logger"]) == ("WARNING", "dashboard.x")
    assert "ValueError: lost [hidden]" in line["error"]
    assert "request_id" not in line


def test_a_line_of_a_cluster_names_it_once():
    before = cluster_at_work.set("prod")
    try:
        assert line_of("watch broke")["cluster"] == "prod"
        formatter = RedactingFormatter("{levelname}: {message}", style="{")
        for said in ("watch broke", "prod: watch broke"):
            record = logging.LogRecord("leases", 30, "x.py", 1, said, (), None)
            assert formatter.format(record) == "WARNING: prod: watch broke"
    finally:
        cluster_at_work.reset(before)
    assert "cluster" not in line_of("x")


@pytest.mark.parametrize(
    ("given", "kept"), [(b"abc-1", True), (b"a b", False), (b"x" * 65, False), (b"", False)]
)
async def test_a_sane_id_is_kept_and_another_is_made(given, kept):
    sent = []

    async def send(message):
        sent.append(message)

    sending = answer_with_id({"headers": [(b"x-request-id", given)]}, send)
    await sending({"type": "http.response.start", "status": 200, "headers": []})
    ((_, value),) = sent[0]["headers"]
    assert (value == given) is kept
    assert 0 < len(value) <= 64
    assert line_of("x")["request_id"] == current.get() == value.decode()


async def test_an_answer_of_the_pages_carries_the_id_and_a_slow_one_is_logged(monkeypatch, caplog):
    pages, sent = OneThreadPages(), []

    def refuse(_client):
        raise TooBusy

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "path": "/", "method": "GET", "headers": [(b"x-request-id", b"r-7")]}
    monkeypatch.setattr(pages.threads.of(scope), "one", refuse)
    await pages(scope, None, send)
    assert caplog.messages == []
    monkeypatch.setattr(settings, "LEASEBOARD", replace(settings.LEASEBOARD, slow_seconds=0))
    await pages(scope, None, send)
    assert caplog.messages == ["GET / took 0.0 s"]
    assert (b"x-request-id", b"r-7") in sent[0]["headers"]


@pytest.mark.django_db
def test_a_slow_statement_is_logged_without_values(monkeypatch, caplog):
    def ask() -> None:
        list(User.objects.filter(username="canary-77", pk__lt=4711))
        with connection.cursor() as cursor:
            cursor.execute("SELECT 'canary-77', 4711, id FROM auth_user")

    ask()
    assert caplog.messages == []
    monkeypatch.setattr(settings, "LEASEBOARD", replace(settings.LEASEBOARD, slow_statement_ms=0))
    request = current.set("r-8")
    ask()
    current.reset(request)
    by_orm, raw = caplog.messages
    assert re.match(r"A statement took \d+ ms \(request r-8\): SELECT .* FROM .auth_user", by_orm)
    assert raw.endswith(": SELECT ?, ?, id FROM auth_user")
    assert not {"canary-77", "4711"} & {*re.split(r"[^\w-]+", caplog.text)}


@pytest.mark.django_db
def test_the_time_of_a_statement_leaves_out_the_wait_for_the_gate():
    with drawing_gate.drawing(()):
        assert connection.execute_wrappers == [drawing_gate._execute, _timed]
    assert connection.execute_wrappers == [_timed]


def test_a_format_that_is_none_stops_the_start():
    assert load({"LEASEBOARD_LOG_FORMAT": "json"}).log_format == "json"
    with pytest.raises(ConfigError, match="write text or json"):
        load({"LEASEBOARD_LOG_FORMAT": "xml"})


def test_a_line_of_another_program_repeats_no_long_address():
    record = logging.LogRecord(
        "uvicorn.access", 20, "x.py", 1, "%s - %s", ("1.2.3.4", "/?" + "p=1&" * 20_000), None
    )
    assert RedactingFilter().filter(record)
    assert len(record.getMessage()) < 1100
