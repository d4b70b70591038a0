"""HEAD is answered wherever GET is, with its status and its headers and without a body."""

from __future__ import annotations

import pytest

from tests.support.board import a_lease, fill
from tests.support.every_url import every_page

NO_GET = 405
PER_REQUEST = {"Content-Length", "Content-Security-Policy", "Expires", "Set-Cookie"}


@pytest.mark.parametrize("page", every_page(), ids=lambda page: page.name)
def test_head_is_answered_as_get_is(board, admin, page):
    for cluster in board.clusters.values():
        fill(cluster.store, a_lease())
    got, asked = admin.get(page.path), admin.head(page.path)
    assert asked.status_code == got.status_code
    if got.status_code != NO_GET:
        assert asked.content == b""
        assert {k: v for k, v in asked.items() if k not in PER_REQUEST} == {
            k: v for k, v in got.items() if k not in PER_REQUEST
        }


@pytest.mark.parametrize("answer_as", ["csv", "ndjson", "json"])
def test_an_export_makes_no_line_for_head(board, admin, answer_as, monkeypatch):
    monkeypatch.setattr("leases.history.export.as_csv", no_lines)
    monkeypatch.setattr("leases.history.export.ndjson", no_lines)
    answer = admin.head(f"/c/a/history/?format={answer_as}")
    assert answer.status_code == 200
    assert b"".join(answer) == b""


def no_lines(changes):
    raise AssertionError("nobody reads them")
    yield
