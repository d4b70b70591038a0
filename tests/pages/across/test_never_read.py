"""A board that has just started, of a cluster that was never read: no zero stands for "unknown"."""

from __future__ import annotations

import re

import pytest

from tests.pages.conftest import text_of
from tests.support.board import a_lease, fill

COUNTS = re.compile(r'<(?:span class="n"[^>]*|b)>([^<]+)</')
PAGES = {
    "/c/a/leases/": 8,
    "/c/a/leases/?at=2026-11-26T10:00:00Z": 4,
    "/c/a/timeline/": 1,
    "/c/a/timeline/?view=table": 1,
    "/c/a/leases/delete/": 3,
}


def counts(answer) -> list[str]:
    main = text_of(answer).partition("<main")[2].partition("</main>")[0]
    return [count.strip() for count in COUNTS.findall(main)]


@pytest.mark.parametrize(("path", "number"), PAGES.items())
def test_counts_are_unknown_until_a_list_was_read(board, admin, path, number):
    assert counts(admin.get(path))[:number] == ["?"] * number
    fill(board.clusters["a"].store, a_lease())
    assert "?" not in counts(admin.get(path))


def test_the_elections_of_the_overview_are_not_none_of_none(board, operator):
    said = text_of(operator.get("/c/a/"))
    assert re.search(r'class="note">not read yet</span>', said)
    assert "0 of" not in said
    fill(board.clusters["a"].store)
    assert re.search(r"0 of\s+0 elections, troubled first", text_of(operator.get("/c/a/")))


def test_the_wall_says_that_it_has_no_list(board, operator):
    said = re.sub(r"<[^>]+>", " ", text_of(operator.get("/c/a/wall/")).partition("<main")[2])
    assert "No list of Leases yet" in said
    assert not re.search(r"\b0\b", said)


def test_the_page_of_all_clusters_knows_no_incidents_either(board, operator):
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text_of(operator.get("/"))))
    assert "? Incidents ? Leases" in page
    item = operator.get("/?format=json").json()["items"][0]
    unknown = {
        name for name in ("incidents", "leases", "phases", "in_trouble") if item[name] is None
    }
    assert unknown == {"incidents", "leases", "phases", "in_trouble"}
    fill(board.clusters["a"].store, a_lease())
    item = next(o for o in operator.get("/?format=json").json()["items"] if o["cluster"] == "a")
    assert (item["incidents"], item["leases"], item["in_trouble"]) == (0, 1, {})
