"""Older changes are behind the link of a page, also those that history did not have yet."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

import pytest

from dashboard.board import running_board
from dashboard.pages.lease import view
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.history.write_batch import write_changes
from tests.pages.conftest import text_of
from tests.support.board import KEY

NOW = datetime.now(UTC)
LEASE = f"/c/a/leases/{KEY}/"
HISTORY = "/c/a/history/?limit=3"


def change(seconds: int, at: datetime | None = None) -> Change:
    at = at or NOW - timedelta(seconds=seconds)
    return Change(
        cluster="a", namespace=KEY.namespace, name=KEY.name, uid="u", kind=Kind.ELECTION,
        change=ChangeType.TAKEN_OVER, at=at, observed_at=at, holder=f"cp-{seconds}",
        resource_version=str(seconds),
    )  # fmt: skip


def told(*changes: Change) -> None:
    """What the feed has, oldest first; history lacks it."""
    feed = running_board().publisher.hubs["a"]
    feed.recent.clear()
    for one in changes:
        feed.seq += 1
        feed.recent.append((feed.seq, one))


def rows_and_older(html: str) -> tuple[list[str], str | None]:
    """The holders of each row, and the URL of the next page."""
    html = html[html.index('id="changes"') :]
    rows = re.findall(r"data-id=.*?(cp-\d+)", html, re.DOTALL)
    older = re.search(r'<a class="btn small" href="([^"]+)" hx-get="[^"]+">Older', html)
    return rows, unquote(older[1].replace("&amp;", "&")) if older else None


@pytest.fixture(params=[HISTORY, f"{HISTORY}&view=sentences", LEASE])
def path(request, monkeypatch) -> str:
    monkeypatch.setattr(view, "CHANGES", 3)
    return request.param


def pages(operator, path: str) -> list[list[str]]:
    """The holders of each page; what the feed had is written after the first one."""
    found = []
    while path:
        rows, path = rows_and_older(text_of(operator.get(path)))
        found.append(rows)
        write_changes([one for _, one in running_board().publisher.hubs["a"].recent])
    return found


def test_no_change_lies_between_two_pages(board, operator, path):
    write_changes([change(seconds) for seconds in (20, 30, 40, 50, 60)])
    told(change(35), change(10), change(5))
    assert pages(operator, path)[0] == ["cp-5", "cp-10", "cp-20"]
    first, *others = pages(operator, path)
    assert first == ["cp-5", "cp-10", "cp-20"]
    assert [row for rows in others for row in rows] == ["cp-30", "cp-35", "cp-40", "cp-50", "cp-60"]


def test_a_page_that_history_lacks_whole_leads_to_the_rest(board, operator, path):
    told(*(change(seconds) for seconds in (50, 40, 30, 20, 10)))
    found = pages(operator, path)
    assert found[0] == ["cp-10", "cp-20", "cp-30"]
    assert {row for rows in found for row in rows} == {f"cp-{one}0" for one in range(1, 6)}


def test_changes_of_one_moment_come_again_rather_than_not_at_all(board, operator, path):
    write_changes([change(seconds, NOW) for seconds in range(8)])
    told(change(9, NOW + timedelta(seconds=1)))
    found = pages(operator, path)
    assert found[0][0] == "cp-9"
    assert {row for rows in found for row in rows} == {*(f"cp-{one}" for one in range(8)), "cp-9"}


def test_a_change_that_was_written_late_is_on_the_page(board, operator, path):
    write_changes([change(10)])
    told(change(20))
    assert rows_and_older(text_of(operator.get(path))) == (["cp-10", "cp-20"], None)
