"""How long a `kubectl patch` of a holder takes to appear in an open page.

python3 -m tests.benchmarks.patch_to_page [ROUNDS]

Starts its own server and Chromium. Prints milliseconds, median and worst, from the start of
kubectl and from its end to the moment at which the row shows the new holder (a MutationObserver's
clock, one machine).
"""

from __future__ import annotations

import subprocess
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from playwright.sync_api import Page

from tests.benchmarks.parts.chromium import chromium
from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.figures import spread
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, serving
from tests.support.signing_in import sign_in_page

NAME = "bench"
WATCH = """key => {
  window.seen = {};
  const look = () => {
    const text = document.querySelector(`[data-key="${key}"]`)?.innerText ?? "";
    const holder = text.match(/holder-\\d+/)?.[0];
    if (holder && !(holder in window.seen)) window.seen[holder] = Date.now();
  };
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true,
  characterData: true});
}"""


def patch(server: Server, holder: str) -> tuple[float, float]:
    """Start and end of one kubectl, in epoch milliseconds."""
    body = f'{{"spec":{{"holderIdentity":"{holder}"}}}}'
    start = time.time() * 1000
    subprocess.run(
        ["kubectl", "--kubeconfig", str(server.kubeconfig), "-n", "default", "patch", "lease", NAME,
         "--type", "merge", "-p", body],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return start, time.time() * 1000


def appeared(page: Page, holder: str) -> float:
    page.wait_for_function(
        "holder => holder in window.seen", arg=holder, polling=20, timeout=10_000
    )
    moment: float = page.evaluate("holder => window.seen[holder]", holder)
    return moment


def patch_often(server: Server, page: Page, rounds: int) -> tuple[list[float], list[float]]:
    from_start, from_end = [], []
    for number in range(rounds):
        holder = f"holder-{number}"
        start, end = patch(server, holder)
        shown = appeared(page, holder)
        from_start.append(shown - start)
        from_end.append(shown - end)
    return from_start, from_end


def options(parser: ArgumentParser) -> None:
    parser.add_argument("rounds", nargs="?", type=int, default=20)


def measure(asked: Namespace, folder: Path) -> None:
    with serving(folder / "data", "--no-demo") as server, chromium() as browser:
        server.wait_synced()
        LeaseApi(server.kubeconfig).create(NAME, holder="nobody-yet")
        page = browser.new_page()
        sign_in_page(page, server.printed("Sign in"))
        page.goto(f"{server.url}/c/embedded/leases/?q={NAME}")
        page.locator('[data-live-pill]:has-text("Live")').wait_for()
        page.evaluate(WATCH, f"default/{NAME}")
        from_start, from_end = patch_often(server, page, asked.rounds)
    for label, values in (("kubectl's start", from_start), ("kubectl's end", from_end)):
        print(f"from {label}: {spread(values)} ({asked.rounds} rounds)")


if __name__ == "__main__":
    main(__doc__, measure, options)
