"""Compares `leases/?at=` and `timeline/?at=` with what a leasestorm did, instant by instant.

    python3 -m tests.benchmarks.as_of_storm [--seconds S] [--leases N] [--elections N]

Starts its own storm and server and prints what was compared and what differed; exits 1 on any
difference. A heartbeat lasts 40 s, so that expiries need a storm of a minute. Between a write and
our observation of it time passes: a Lease that changes within MARGIN of an instant is not compared
at that instant.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.storm_load import all_written, ask, leasestorm, source
from tests.support.processes import Server, free_port, serving, wait_for
from tests.support.signing_in import signed_in

MARGIN = 0.8  # seconds
EVERY = 0.25  # seconds between two instants that are asked about
ABSENT = "absent"
ANYBODY = "*"  # the truth names no holder of what only fell silent
PAGES = {
    "leases": "limit=1000",
    "timeline": "limit=200&kind=election&kind=heartbeat&kind=identity&range=1h",
}
State = tuple[str, str | None]  # phase and holder
Story = dict[str, list[tuple[float, State]]]


# Holder changes, releases, silences, deletions and re-creations.
CHANGES = (
    "--duration", "600", "--transitions-per-s", "4", "--release-share", "0.4", "--expire-per-s",
    "1", "--revive-after", "45", "--delete-per-s", "1", "--recreate-after", "3",
)  # fmt: skip


def read_story(truth: Path) -> Story:
    """By Lease: each state, and the time from which it holds, by the storm's log alone."""
    story: Story = defaultdict(list)
    runs_out: dict[str, float] = {}
    for line in truth.read_text().splitlines():
        event = json.loads(line)
        if "key" not in event:
            continue
        key, at, states = event["key"], event["t"], story[event["key"]]
        if key in runs_out and runs_out[key] < at:
            states.append((runs_out[key], ("expired", states[-1][1][1])))
        runs_out.pop(key, None)
        if event["kind"] == "silent":
            if not states:
                states.append((0.0, ("held", ANYBODY)))
            renewed = datetime.fromisoformat(event["lastRenew"]).timestamp()
            runs_out[key] = renewed + event["duration"]
            continue
        if not states:
            states.append((0.0, _state(event["from"], exists=event["from"] is not None)))
        states.append((at, _state(event["to"], exists=event["kind"] != "deleted")))
    for key, at in runs_out.items():
        story[key].append((at, ("expired", story[key][-1][1][1])))
    return story


def _state(holder: str | None, *, exists: bool) -> State:
    if not exists:
        return ABSENT, None
    return ("held", holder) if holder else ("vacant", None)


def compare(story: Story, server: Server, since: float, until: float) -> tuple[Counter[str], list]:
    """How many states of each kind were right, and what was wrong."""
    browser = signed_in(server)
    right: Counter[str] = Counter()
    wrong: list[Any] = []
    at = since
    while at < until:
        for page, query in PAGES.items():
            found = _asked(browser, f"{server.url}/c/storm/{page}/?format=json&{query}", at)
            for key, states in story.items():
                if any(abs(time - at) < MARGIN for time, _ in states):
                    continue
                expected = [state for time, state in states if time <= at][-1]
                seen = found.get(key, (ABSENT, None))
                if expected in (seen, (seen[0], ANYBODY)):
                    right[f"{page} {expected[0]}"] += 1
                else:
                    wrong.append((page, at, key, expected, seen))
        at += EVERY
    return right, wrong


def _asked(browser: Any, url: str, at: float) -> dict[str, State]:
    moment = datetime.fromtimestamp(at, UTC)
    with browser.open(f"{url}&at={moment:%Y-%m-%dT%H:%M:%S.%fZ}", timeout=30) as answer:
        items = json.load(answer)["items"]
    return {
        f"{item['namespace']}/{item['name']}": (item["phase"], item["holder"])
        for item in items
        if item["phase"] not in ("deleted", "unknown")
    }


def run(asked: Namespace, folder: Path) -> tuple[Counter[str], list[Any]]:
    """A storm of `seconds`, watched; then every instant of it compared."""
    port, truth = free_port(), folder / "truth.ndjson"
    size = ("--leases", str(asked.leases), "--elections", str(asked.elections))
    with (
        leasestorm(port, truth, *size, *CHANGES) as process,
        serving(folder / "data", "--no-demo", "--cluster", source(port)) as server,
    ):
        server.wait_synced()
        since = time.time() + MARGIN
        time.sleep(asked.seconds)
        until = time.time() - MARGIN
        ask(port, "/storm/quit")
        process.wait(timeout=20)  # it writes the rest of its log
        wait_for(lambda: all_written(server), what="history to be written")
        return compare(read_story(truth), server, since, until)


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=75)
    parser.add_argument("--leases", type=int, default=100)
    parser.add_argument("--elections", type=int, default=40)


def measure(asked: Namespace, folder: Path) -> int:
    right, wrong = run(asked, folder)
    print(f"right: {dict(right)}, wrong: {len(wrong)}")
    for line in wrong[:20]:
        print(*line)
    return 1 if wrong or not right else 0


if __name__ == "__main__":
    main(__doc__, measure, options)
