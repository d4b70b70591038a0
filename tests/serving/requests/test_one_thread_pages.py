"""Django's undocumented methods that our handler overrides: a version without them fails here."""

from __future__ import annotations

import threading

import django
from asgiref.testing import ApplicationCommunicator
from django.http import HttpRequest, HttpResponse

from dashboard.serving.request_threads import OneThreadPages

SCOPE = {
    "type": "http", "http_version": "1.1", "method": "GET", "path": "/", "query_string": b"",
    "headers": [], "client": ("127.0.0.1", 1),
}  # fmt: skip


def test_django_is_the_minor_version_that_is_pinned():
    assert django.get_version().startswith("5.2.")


async def test_a_request_and_all_its_middleware_run_in_one_other_thread(monkeypatch):
    pages, seen = OneThreadPages(), list[int]()

    def chain(request: HttpRequest) -> HttpResponse:
        seen.append(threading.get_ident())
        return HttpResponse("a page")

    monkeypatch.setattr(pages, "_middleware_chain", chain)
    visit = ApplicationCommunicator(pages, SCOPE)
    await visit.send_input({"type": "http.request", "body": b""})
    assert (await visit.receive_output(10))["status"] == 200
    assert (await visit.receive_output(10))["body"] == b"a page"
    await visit.wait()
    assert len(seen) == 1
    assert seen[0] != threading.get_ident()


def test_the_middleware_is_loaded_for_threads(monkeypatch):
    asked: list[bool] = []
    monkeypatch.setattr(
        "django.core.handlers.base.BaseHandler.load_middleware",
        lambda _, is_async=False: asked.append(is_async),
    )
    OneThreadPages()
    assert asked == [False]
