"""Takes the pictures of README, light and dark, from the demo after a minute of life.

python3 -m tests.browser.readme_pictures
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.support.processes import ROOT, serving
from tests.support.signing_in import sign_in_page

LIFE = 75.0  # seconds of the demo before the pictures


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "data") as server:
        server.wait_synced()
        time.sleep(LIFE)
        with sync_playwright() as driver:
            chromium = driver.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            context = chromium.new_context(viewport={"width": 1440, "height": 900})
            page = context.new_page()
            sign_in_page(page, server.printed("Sign in"))
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                page.goto(f"{server.url}/c/embedded/")
                page.wait_for_timeout(2000)
                page.screenshot(path=ROOT / "docs" / f"overview-{scheme}.png")
            chromium.close()


if __name__ == "__main__":
    main()
