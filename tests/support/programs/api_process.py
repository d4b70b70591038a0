"""A Lease API that a test ends and starts again while a page is open."""

from __future__ import annotations

import signal
from pathlib import Path

from playwright.sync_api import Page

from tests.support.processes import environment, free_port, get, start_python, wait_for


class ApiProcess:
    """A Lease API that outlives the dashboard, and can be killed and started again."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.port = free_port()
        self.start()

    def start(self) -> None:
        command = ("manage.py", "lease_api", "--port", str(self.port))
        with self.data.with_suffix(".log").open("ab") as log:
            self._process = start_python(
                *command, env=environment(self.data), stdout=log, stderr=log
            )
        alive = f"http://127.0.0.1:{self.port}/livez"
        wait_for(lambda: get(alive)[0] == 200, what="the Lease API")

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def signal(self, what: signal.Signals) -> None:
        self._process.send_signal(what)

    def end(self, how: signal.Signals) -> None:
        self.signal(how)
        self._process.wait(timeout=60)

    def kill(self) -> None:
        self.end(signal.SIGKILL)


def pill(page: Page) -> str:
    return page.locator("[data-live-pill]").inner_text()
