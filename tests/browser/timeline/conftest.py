"""A server with a past, and pages of a signed-in admin."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page

from tests.browser.visits import Visits
from tests.support.processes import Server, fill, run_python, serving

PAST = "tests.browser.timeline.past"
_begun: list[datetime] = []  # when the past of each module ended


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("timeline") / "data"
    fill(data)
    _begun.append(datetime.now(UTC).replace(microsecond=0))
    run_python("-m", PAST, now().isoformat(), data=data)
    with serving(data, "--no-demo") as one:
        one.wait_synced()
        yield one


def now() -> datetime:
    """The end of the past. A stretch up to here is nearly all that there is."""
    return _begun[-1]


@pytest.fixture
def page(visits: Visits) -> Page:
    """A signed-in page; an error in its console, a refused script or style among them, fails."""
    return visits.page()


def asked(page: Page, name: str) -> str:
    return parse_qs(urlsplit(page.url).query).get(name, [""])[0]


def back(page: Page) -> None:
    """The page before, drawn anew."""
    with page.expect_event("load"):
        page.evaluate("() => void setTimeout(() => history.back())")


def url_of(server: Server, query: str = "") -> str:
    return f"{server.url}/c/embedded/timeline/?{query}"


def text_of(hours_ago: float) -> str:
    return (now() - timedelta(hours=hours_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def stretch(server: Server, **more: str) -> str:
    """A fixed stretch of six hours that ends at now()."""
    pairs = {"from": text_of(6), "to": text_of(0)} | more
    return url_of(server, "&".join(f"{name}={value}" for name, value in pairs.items()))


def drawn_brush(page: Page) -> Locator:
    """The brush drawn for the stretch in the URL: the URL changes before the board does."""
    return page.locator(f'.brush[data-from^="{moment(asked(page, "from")).timestamp():.0f}"]')
