"""What people call things may be long: no page breaks, and what is cut is whole in its title."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.browser.judgements import NEXT_FRAME, TOO_WIDE, UNTITLED
from tests.browser.sizes.long_names import OF_253, TEAM, fill, names_seen
from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi, leases, timestamp
from tests.support.processes import Server, serving, wait_for
from tests.support.signing_in import form_of

ONE_WORD, HELD = "q" * 200, "h" * 240
NAME = "The operators of the payments platform in the central region of Europe, day and night shift"
CLUSTER = "/c/embedded"
FORMS = {
    "/notifications/quiet/": {"lease": f"default/{OF_253[0]}", "reason": "an upgrade"},
    "/notifications/receivers/new/": {
        "name": NAME,
        "url": "http://127.0.0.1:9/",
        "group_seconds": "9",
    },
    "/badges/": {"name": NAME, "cluster": "embedded", "lease": f"default/{OF_253[0]}"},
    "/wall-links/": {"name": NAME, "clusters": "embedded", "days": "9"},
    "/tokens/": {"name": NAME, "role": "operator", "days": "9"},
    f"{CLUSTER}/leases/delete/?q={ONE_WORD}": {"typed_number": "1", "reason": ONE_WORD},
}
PAGES = {
    "a filter without a match": f"{CLUSTER}/leases/?q={ONE_WORD}",
    "what is deleted": f"{CLUSTER}/leases/delete/?namespace=default&held=delete",
    "deletions": f"{CLUSTER}/deletions/",
    "a deletion": f"{CLUSTER}/deletions/1/",
    "a form": f"{CLUSTER}/leases/default/{OF_253[0]}/hand-over/",
    "a deletion of one": f"{CLUSTER}/leases/{TEAM}/{HELD}/delete/",
    "a Lease with a long holder": f"{CLUSTER}/leases/{TEAM}/{HELD}/",
    "an incident": "",
    "mutes": "/notifications/quiet/",
    "receivers": "/notifications/",
    "badges": "/badges/",
    "wall links": "/wall-links/",
    "tokens": "/tokens/",
}
WRAPPED = """() => [...document.querySelectorAll(".crumb > :first-child")].filter((el) => {
  const range = document.createRange();
  range.selectNodeContents(el);
  return range.getClientRects().length > 1;
}).map((el) => `wraps: ${el.textContent}`)"""
# A gap that goes on and that nobody watched in part.
LONG_GAP = """() => document.querySelectorAll(".aff .m-state").forEach((cell) => {
  cell.lastChild.textContent = "14 m 23 s so far, 8.5 s more not watched";
})"""
FRAMES = 20
FEWEST = 10  # letters of a name that are seen at least


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("labels") / "data", "--no-demo") as one:
        api = LeaseApi(one.kubeconfig)
        fill(api)
        now = timestamp()
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 1}
        spec |= {"acquireTime": now, "renewTime": now}
        api.send("POST", leases(TEAM), {"metadata": {"name": ONE_WORD}, "spec": spec})
        held = spec | {"holderIdentity": "W" * 900, "leaseDurationSeconds": 3600}
        api.send("POST", leases(TEAM), {"metadata": {"name": HELD}, "spec": held})
        one.wait_synced()
        yield one


@pytest.fixture(scope="module")
def written(server: Server) -> list[str]:
    """Whether the forms were sent, once for all tests."""
    return []


@pytest.fixture
def page(visits: Visits, written: list[str]) -> Page:
    page = visits.page()
    listed = f"{visits.url}{CLUSTER}/leases/?format=json&q={ONE_WORD}"
    written or wait_for(
        lambda: page.request.get(listed).json()["total"], what="the Lease to delete"
    )
    for path, given in FORMS.items() if not written else ():
        url = f"{visits.url}{path}"
        fields = form_of(page.request.get(url).text()) | given
        assert page.request.post(url, form=dict(fields)).ok, path
    written.append("all")
    return page


@pytest.mark.parametrize("name", PAGES)
def test_nothing_overflows_and_what_is_cut_has_a_title(name: str, visits: Visits, page: Page):
    path = PAGES[name] or f"{CLUSTER}/incidents/{an_incident(visits, page)}/"
    page.goto(f"{visits.url}{path}")
    page.evaluate(LONG_GAP)
    found = []
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 844})
        for _ in range(FRAMES):  # what a script lays out is drawn anew for the new width
            page.evaluate(NEXT_FRAME)
            wrong = wrong_things(page)
            if not wrong:
                break
        found += [f"{width}: {line}" for line in wrong]
    assert found == []


def wrong_things(page: Page) -> list[str]:
    wrong: list[str] = [
        line for script in (TOO_WIDE, UNTITLED, WRAPPED) for line in page.evaluate(script)
    ]
    seen = names_seen(page, ".rep .name, .aff .name")
    wrong += [
        f"{shown} of {whole}"
        for whole, shown in seen.items()
        if len(shown) < min(FEWEST, len(whole)) or shown[-3:] != whole[-3:]
    ]
    return wrong + (["names look alike"] if len(set(seen.values())) < len(seen) else [])


def an_incident(visits: Visits, page: Page) -> str:
    """The id of one with several Leases of long names."""
    url = f"{visits.url}{CLUSTER}/incidents/?format=json&planned=true"

    def found() -> list[str]:
        items = page.request.get(url).json()["items"]
        return [str(one["id"]) for one in items if len(one["leases"]) > 1]

    return wait_for(found, what="an incident")[0]
