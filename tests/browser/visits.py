"""Pages opened as a signed-in admin; what a console complains about, be it of the content security
policy, is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.processes import Server, wait_for
from tests.support.signing_in import cookies, signed_in

SIZE = {"width": 1440, "height": 900}
PATIENCE = 60_000  # ms: several tests may share two slow cores
LEASE = re.compile(r"/c/[^/]+/leases/[^/]+/[^/?]+/")


class Profiles:
    """The profiles of a browser by their options, each with a page that an earlier test left.

    A new profile, as a new page, costs half a second of a core.
    """

    def __init__(self, browser: Browser) -> None:
        self.complaints: list[str] = []
        self._browser = browser
        self._contexts: dict[str, BrowserContext] = {}  # by their options
        self._left: dict[BrowserContext, Page] = {}  # empty pages
        self._in_use: set[BrowserContext] = set()
        self._scripted: set[Page] = set()  # no later test may have one

    def page(
        self, keep: list[Any], options: dict[str, Any], *, script: str = "", whose: str = ""
    ) -> Page:
        """An empty page; its profile, one of those of that person, has the cookies to `keep`.

        A `script` that is to run before those of a page would stay: its page is closed at the end.
        """
        key = repr((whose, sorted(options.items())))
        if key not in self._contexts:
            self._contexts[key] = self._browser.new_context(**options)
            self._contexts[key].set_default_timeout(PATIENCE)
        context = self._contexts[key]
        if context not in self._in_use:
            self._in_use.add(context)
            context.clear_cookies()  # a late answer to an earlier test may have set one
            context.add_cookies(keep)
        if not script:
            return self._left.pop(context, None) or self._new_page(context, whose)
        page = self._new_page(context, whose)
        page.add_init_script(script)
        self._scripted.add(page)
        return page

    def leave(self) -> list[str]:
        """Close what is open; what the consoles complained about meanwhile."""
        for context in self._contexts.values():
            for page in context.pages:
                if page is self._left.get(context):
                    continue
                if context in self._left or page in self._scripted:
                    page.close()
                    continue
                page.unroute_all()
                page.goto("about:blank")
                page.mouse.move(0, 0)
                self._left[context] = page
        self._in_use.clear()
        self._scripted.clear()
        found = self.complaints.copy()
        self.complaints.clear()
        return found

    def stranger(self, who: str, viewport: dict[str, int]) -> Page:
        """An empty page of somebody who is not signed in, as a screen in a room."""
        page = self.page([], {}, whose=who)
        page.set_viewport_size(viewport)  # type: ignore[arg-type]
        return page

    def _new_page(self, context: BrowserContext, whose: str) -> Page:
        page = context.new_page()
        if not whose:  # the console of a screen rightly says that it is refused
            page.on("console", lambda line: self._note(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: self._note(str(error)))
        return page

    def _note(self, complaint: str) -> None:
        self.complaints.append(complaint)


def reload_until(page: Page, is_shown: Callable[[], object], *, what: str) -> None:
    """Load the page again and again until it shows something."""

    def look() -> bool:
        if is_shown():
            return True
        page.reload()
        return False

    wait_for(look, what=what)


class Visits:
    """The printed sign-in link works once: who has used it may open any number of pages."""

    def __init__(self, profiles: Profiles, server: Server) -> None:
        self.url = server.url
        self.complaints = profiles.complaints
        self._profiles = profiles
        self._cookies = cookies(signed_in(server), server)

    def page(self, *, viewport: dict[str, int] = SIZE, script: str = "", **options: Any) -> Page:
        """An empty page, where a `script` runs before those of each page; `options` are those of a
        browser context."""
        page = self._profiles.page(self._cookies, options, script=script)
        page.set_viewport_size(viewport)  # type: ignore[arg-type]
        return page

    def open(self, path: str, **options: Any) -> Page:
        """A page of the server. One of a Lease waits until the server has heard of the Lease."""
        return self.lead(
            self.page(**options), path, scripts=options.get("java_script_enabled", True)
        )

    def lead(self, page: Page, path: str, *, scripts: bool = True) -> Page:
        """The same with a page that there is."""
        if LEASE.match(path):
            wait_for(lambda: page.request.head(f"{self.url}{path}").ok, what=path)
        page.goto(f"{self.url}{path}")
        if LEASE.fullmatch(path.partition("?")[0]):  # one that was deleted and made again
            if not scripts:
                reload_until(page, page.locator("#facts").count, what=path)
            page.locator("#facts").wait_for(state="attached")
        return page

    def open_live(self, path: str, **options: Any) -> Page:
        """The same, once its socket is."""
        page = self.open(path, **options)
        expect(page.locator("[data-live-pill]")).to_contain_text("Live")
        return page

    def leave(self) -> list[str]:
        """Close what is open; what the consoles complained about meanwhile."""
        return self._profiles.leave()
