"""Pages opened as a signed-in admin, each in a profile of its own; what a console complains about,
be it of the content security policy, is kept.
"""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.processes import Server
from tests.support.signing_in import sign_in_page


class Visits:
    """The printed sign-in link works once: who has used it may open any number of pages."""

    def __init__(self, browser: Browser, server: Server) -> None:
        self.complaints: list[str] = []
        self._browser = browser
        self._server = server
        self._open: list[BrowserContext] = []
        context = browser.new_context()
        sign_in_page(context.new_page(), server.printed("Sign in"))
        self._signed_in = context.storage_state()
        context.close()

    @property
    def url(self) -> str:
        return self._server.url

    def open(self, path: str, **options: Any) -> Page:
        """A page of the server; `options` are those of a browser context."""
        known: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
        context = self._browser.new_context(storage_state=self._signed_in, **(known | options))
        self._open.append(context)
        page = context.new_page()
        page.on("console", lambda line: self._note(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: self._note(str(error)))
        page.goto(f"{self._server.url}{path}")
        return page

    def open_live(self, path: str, **options: Any) -> Page:
        """The same, once its socket is."""
        page = self.open(path, **options)
        expect(page.locator("[data-live-pill]")).to_contain_text("Live")
        return page

    def leave(self) -> None:
        """Close what is open."""
        for context in self._open:
            context.close()
        self._open.clear()

    def _note(self, complaint: str) -> None:
        self.complaints.append(complaint)
