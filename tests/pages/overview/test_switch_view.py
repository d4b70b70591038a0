"""Another cluster of the menu opens the same page, with the filters that make sense there."""

from __future__ import annotations

import html
import re
from urllib.parse import quote

import pytest

from leases.domain.change import ChangeType
from leases.domain.lease import ObjectName
from tests.pages.conftest import remember, text_of
from tests.support.board import KEY, a_lease, fill

THERE = ObjectName("kube-system", "both")
AT = "2026-11-20T03:12:40Z"


@pytest.fixture(autouse=True)
def two_clusters(store, board):
    """Cluster a as in every test, and b with one Lease that a does not have."""
    fill(board.clusters["b"].store, a_lease(THERE))


def switched(reader, page: str) -> str:
    """Where the link to b leads from a page of a."""
    answer = reader.get(f"/c/b/switch/?from={quote(page)}")
    assert answer.status_code == 302
    return answer["Location"]


@pytest.mark.parametrize(
    ("page", "there"),
    [
        ("/c/a/", "/c/b/"),
        ("/c/a/leases/?q=both&phase=late&phase=held&sort=-name&page=3",
         "/c/b/leases/?q=both&phase=late&phase=held&sort=-name"),
        (f"/c/a/leases/?at={AT}&holder=cp-1", f"/c/b/leases/?at={quote(AT)}"),
        ("/c/a/leases/?namespace=apps", "/c/b/leases/"),
        ("/c/a/leases/?namespace=kube-system", "/c/b/leases/?namespace=kube-system"),
        ("/c/a/timeline/?range=24h&q=both&page=2", "/c/b/timeline/?range=24h&q=both"),
        ("/c/a/holders/?group=identity&q=x", "/c/b/holders/?group=identity&q=x"),
        ("/c/a/leases/new/?name=x", "/c/b/leases/new/?name=x"),
        ("/c/a/nodes/?group=zone", "/c/b/nodes/?group=zone"),
        ("/c/a/history/stretch/?range=6h&sort=gap", "/c/b/history/stretch/?range=6h&sort=gap"),
        ("/c/a/incidents/?cause=crash", "/c/b/incidents/?cause=crash"),
        ("/c/a/history/?change=expired&lease=both&before=5-6&view=sentences",
         "/c/b/history/?change=expired&lease=both&view=sentences"),
        (f"/c/a/leases/{THERE}/?range=1h", f"/c/b/leases/{THERE}/?range=1h"),
        (f"/c/a/leases/{THERE}/?at={AT}", f"/c/b/leases/{THERE}/?at={quote(AT)}"),
        (f"/c/a/leases/{THERE}/edit/", f"/c/b/leases/{THERE}/"),
        (f"/c/a/leases/{KEY}/", "/c/b/leases/?absent=kube-system%2Fscheduler"),
        ("/c/a/leases/apps/a%20b%2B/", "/c/b/leases/?absent=apps%2Fa+b%2B"),
        ("/audit/", "/c/b/"),
        ("/wall-links/?page=2", "/c/b/"),
        ("/nowhere/at/all", "/c/b/"),
        ("https://evil.example/c/a/leases/", "/c/b/"),
        ("//evil.example/", "/c/b/"),
        ("", "/c/b/"),
    ],
)  # fmt: skip
def test_a_page_leads_to_the_same_page_of_the_other_cluster(admin, page, there):
    assert switched(admin, page) == there
    assert admin.get(there).status_code == 200


def test_a_lease_that_was_deleted_there_leads_to_its_history(operator):
    remember(ChangeType.CREATED, cluster="b", holder="cp-1")
    assert switched(operator, f"/c/a/leases/{KEY}/") == f"/c/b/leases/{KEY}/"


def test_the_list_says_which_lease_is_not_there(operator):
    page = text_of(operator.get(switched(operator, f"/c/a/leases/{KEY}/")))
    assert f"b has no Lease {KEY}" in page
    assert 'href="/c/b/leases/?q=scheduler"' in page
    assert str(THERE) in page, "the list itself"


@pytest.mark.parametrize("absent", [str(THERE), "", "nonsense", "/"])
def test_the_list_claims_nothing_else(operator, absent):
    assert "has no Lease" not in text_of(operator.get(f"/c/b/leases/?absent={absent}"))


def test_a_list_that_was_never_read_claims_nothing(operator, board):
    board.clusters["b"].store.__init__("b")
    page = text_of(operator.get(f"/c/b/leases/?absent={KEY}"))
    assert "no list of its Leases has been read yet" in page


def test_the_menu_of_each_page_leads_to_that_page(operator):
    page = text_of(operator.get(f"/c/a/leases/{KEY}/?range=1h"))
    links = re.findall(r'<a href="([^"]+)" data-switch( aria-current="true")?>', page)
    assert [html.unescape(link) for link, _ in links] == [
        f"/c/{name}/switch/?from={quote(f'/c/a/leases/{KEY}/?range=1h', safe='')}" for name in "ab"
    ]
    assert [current for _, current in links] == [' aria-current="true"', ""]


def test_a_guest_learns_of_no_cluster(guest):
    assert guest.get("/c/b/switch/?from=/c/a/").status_code == 403
