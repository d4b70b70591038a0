"""Take the README's pictures of a running Leaseboard: python3 docs/take_pictures.py SIGN_IN_LINK.

Needs playwright (requirements-dev.txt) and Chromium.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

VIEW: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
HERE = Path(__file__).resolve().parent


def main(sign_in_link: str) -> None:
    """Sign in once, then save the overview in the light and in the dark theme."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        signed_in = browser.new_context()
        page = signed_in.new_page()
        page.goto(sign_in_link)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("Live", exact=True).wait_for()
        overview, session = page.url, signed_in.storage_state()
        # A new context for each theme: a switch would be caught in the middle of its transition.
        for theme in ("light", "dark"):
            context = browser.new_context(color_scheme=theme, storage_state=session, **VIEW)
            page = context.new_page()
            page.goto(overview)
            page.get_by_text("Live", exact=True).wait_for()
            page.wait_for_timeout(3000)  # rows that have just changed glow for a moment
            page.screenshot(path=HERE / f"overview-{theme}.png")
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Give the sign-in link that serve prints.")
    main(sys.argv[1])
