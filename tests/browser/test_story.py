"""The story Leaseboard is for: a holder dies, the Lease turns late, runs out, and is taken over,
before one's eyes."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.processes import Server, StartedProcess, manage, serving, wait_for
from tests.support.programs.contender import contending
from tests.support.signing_in import sign_in_page

NAMESPACE, NAME = "default", "story"
KEY = f"{NAMESPACE}/{NAME}"
GAP_TOLERANCE = 1.5


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "data", "--no-demo") as one:
        one.wait_synced()
        yield one


@pytest.fixture
def contenders(server: Server) -> Iterator[dict[str, StartedProcess]]:
    with ExitStack() as stack:
        yield {
            identity: stack.enter_context(
                contending(server.kubeconfig, NAMESPACE, NAME, identity, duration=6, deadline=4)
            )
            for identity in ("py-1", "py-2", "py-3")
        }


def history(server: Server) -> list[dict[str, object]]:
    done = manage(server.data, "export_history")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def moment(text: object) -> float:
    return datetime.fromisoformat(str(text)).timestamp()


def test_a_killed_holder_is_seen_to_expire_and_to_be_taken_over(
    server: Server, contenders: dict[str, StartedProcess], page: Page
) -> None:
    sign_in_page(page, server.printed("Sign in"))
    page.goto(f"{server.url}/c/embedded/leases/?q={NAME}")
    row = page.locator(f'[data-key="{KEY}"]')
    wait_for(lambda: seen_held(page), what="the row of the story, held and renewed")
    loaded_at = page.evaluate("performance.timeOrigin")
    wall = page.context.new_page()
    wall.goto(f"{server.url}/c/embedded/wall/")

    holder = holder_of(row.inner_text())
    others = [process for name, process in contenders.items() if name != holder]
    contenders[holder].kill()
    # A contender may look in the very moment it runs out; held back, it leaves us time to see.
    for process in others:
        process.send_signal(signal.SIGSTOP)
    seen = watch_phases(page, stop_at=lambda phase, _: phase == "expired")
    for process in others:
        process.send_signal(signal.SIGCONT)
    seen += watch_phases(page, stop_at=lambda _, name: name != holder)

    phases = [phase for _, phase, _ in seen]
    assert phases[:3] == ["held", "late", "expired"]
    assert phases[-1] == "held"
    expired_at = next(at for at, phase, _ in seen if phase == "expired")
    taken_at, _, successor = seen[-1]
    assert page.evaluate("performance.timeOrigin") == loaded_at, "the page was reloaded"

    url = f"{server.url}/c/embedded/history/?format=json&lease={NAME}"
    wait_for(
        lambda: story_of(page.request.get(url).json()["items"][::-1]),
        what="expired and taken_over in history",
    )
    changes = story_of(history(server))
    assert changes
    expired, taken = changes
    assert (expired["holder"], taken["previous_holder"], taken["holder"]) == (
        holder, holder, successor,
    )  # fmt: skip
    assert abs(float(str(taken["gap_seconds"])) - (taken_at - expired_at)) < GAP_TOLERANCE
    assert abs(moment(taken["at"]) - taken_at) < GAP_TOLERANCE

    page.goto(f"{server.url}/c/embedded/leases/{KEY}/")
    shown = page.locator("main").inner_text()
    assert successor in shown
    changes = page.locator("#changes").inner_text().lower()
    assert changes.index("taken over") < changes.index("expired")

    tile = wall.locator(f'[data-tile="{KEY}"]')
    expect(tile).to_contain_text(successor)
    expect(wall.locator("body")).to_contain_text(successor)


def seen_held(page: Page) -> bool:
    row = page.locator(f'[data-key="{KEY}"].is-held')
    if row.count() == 0:
        page.reload()
    return row.count() > 0 and "election" in row.inner_text().lower()


def holder_of(text: str) -> str:
    return next(name for name in ("py-1", "py-2", "py-3") if name in text)


def watch_phases(
    page: Page, *, stop_at: Callable[[str, str], bool]
) -> list[tuple[float, str, str]]:
    """Every (time, phase, holder) that the row shows, up to the one to stop at."""
    script = """key => {
      const row = document.querySelector(`[data-key="${key}"]`);
      const phase = ["held", "late", "expired", "vacant", "untimed"]
        .find(p => row.classList.contains("is-" + p));
      return [phase, row.innerText];
    }"""
    seen: list[tuple[float, str, str]] = []
    end = time.monotonic() + 120
    while time.monotonic() < end:
        phase, text = page.evaluate(script, KEY)
        holder = holder_of(text)
        if not seen or seen[-1][1:] != (phase, holder):
            seen.append((time.time(), phase, holder))
        if stop_at(phase, holder):
            return seen
        time.sleep(0.05)
    raise AssertionError(f"the row showed {seen} and nothing else")


def story_of(changes: list[dict[str, object]]) -> list[dict[str, object]] | None:
    """The last two changes, once they are the expiry and the take-over."""
    mine = [c for c in changes if c["name"] == NAME and c["change"] != "reconfigured"][-2:]
    return mine if [c["change"] for c in mine] == ["expired", "taken_over"] else None
