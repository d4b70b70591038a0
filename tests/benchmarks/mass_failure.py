"""A thousand heartbeats a second stop, run out and come back: does anything else wait for them?

python3 -m tests.benchmarks.mass_failure [--leases 130000] [--elections 2000] [--rate 13000]
    [--expire 1000] [--seconds 150] [--silence 70]

Starts leasestorm and `manage.py serve --no-demo`, and opens the list of elections in a Chromium.
Prints the delay from the storm's own log of a change of holder to the change of its row, while at
least 40,000 Leases run out and recover, and whether `export_history` holds exactly what happened
(storm_check.py). Exits 1 if not.
"""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.parts.chromium import Seen, delays, watched_elections
from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.figures import Usage, spread
from tests.benchmarks.parts.open_pages import Pages
from tests.benchmarks.parts.storm_load import (
    CLUSTER,
    SETTLE,
    all_written,
    calm_options,
    check_history,
    interrupted_at_end,
    source,
    stats,
    storm_and_server,
)
from tests.support.processes import ROOT, Server, free_port, get, wait_for
from tests.support.signing_in import Opener, signed_in

BEHIND = 2.0  # seconds from which on nothing is claimed as now


def options(parser: ArgumentParser) -> None:
    calm_options(parser, seconds=150)
    parser.add_argument("--expire", type=float, default=1000)
    parser.add_argument("--silence", type=float, default=0, help="seconds in which no node renews")


def watch(server: Server, seconds: float) -> Seen:
    """The changes of holder that a browser shows within so many seconds."""
    with watched_elections(Pages(server)) as page:
        page.wait_for_timeout(seconds * 1000)
        seen: Seen = page.evaluate("window.seen")
    return seen


@dataclass
class Told:
    """What page, JSON and metric said of the lag, at the looks at which there was one."""

    metric: float = 0.0
    json: float = 0.0
    page: int = 0
    looks: int = 0

    def look(self, server: Server, opener: Opener) -> None:
        url = f"{server.url}/c/{CLUSTER}"
        with opener.open(f"{url}/leases/?format=json&limit=1", timeout=60) as answer:
            self.json = max(self.json, json.load(answer).get("behind_seconds", 0.0))
        with opener.open(f"{url}/", timeout=60) as answer:
            self.page += "s behind: more arrives than it reads" in answer.read().decode()
        found = re.search(r"^leaseboard_seconds_behind\S* (\S+)", metrics(server), re.MULTILINE)
        self.metric = max(self.metric, float(found[1]) if found else 0.0)
        self.looks += 1
        time.sleep(0.5)

    @property
    def is_whole(self) -> bool:
        """Whether all three told it, or there was none to tell."""
        return self.metric < BEHIND or (self.json >= BEHIND and self.page > 0)


def metrics(server: Server) -> str:
    return get(f"{server.url}/metrics")[1]


def silence(asked: Namespace, folder: Path) -> int:
    """All nodes fall silent for so long, then renew again."""
    port, told = free_port(), Told()
    command = [sys.executable, "-m", "tests.benchmarks.parts.silent_storm", "--quiet"]
    command += ["--port", str(port), "--leases", str(asked.leases), "--duration", "3600"]
    command += ["--elections", str(asked.elections), "--rate", str(asked.rate)]
    with ExitStack() as stack:
        storm = stack.enter_context(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL))
        stack.callback(storm.terminate)
        wait_for(lambda: stats(port), what="the storm to begin", seconds=60)
        server = Server(folder / "data", "--no-demo", "--cluster", source(port))
        interrupted_at_end(stack, server)
        server.wait_synced(seconds=180)
        opener = signed_in(server)
        wait_for(lambda: all_written(server), what="what was there", seconds=180)
        time.sleep(30)  # their rhythm is learned
        usage = Usage(server.process.pid)
        storm.send_signal(signal.SIGUSR1)
        time.sleep(asked.silence)
        storm.send_signal(signal.SIGUSR2)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            told.look(server, opener)
        wait_for(lambda: settled(server, opener), what="the incident to settle", seconds=400)
        wait_for(lambda: all_written(server), what="the history", seconds=300)
        print(f"CPU {usage.share:.1f} % of one core, RSS {usage.memory():.0f} MiB")
        incidents = found_incidents(server, opener)
    return report(folder / "data", asked.leases, incidents, told)


def found_incidents(server: Server, opener: Opener) -> list[dict[str, Any]]:
    with opener.open(f"{server.url}/c/{CLUSTER}/incidents/?format=json", timeout=60) as answer:
        items: list[dict[str, Any]] = json.load(answer)["items"]
    return items


def settled(server: Server, opener: Opener) -> bool:
    found = found_incidents(server, opener)
    return bool(found) and all(one["settled"] and one["ended"] for one in found)


def report(data: Path, nodes: int, incidents: list[dict[str, Any]], told: Told) -> int:
    query = (
        "SELECT change, cause, count(*) FROM leases_change "
        "WHERE kind = 'heartbeat' AND change <> 'created' GROUP BY 1, 2"
    )
    with closing(sqlite3.connect(next(data.glob("*.sqlite3")))) as database:
        counts = {(word, cause): number for word, cause, number in database.execute(query)}
        row = database.execute(
            "SELECT max(length(members)), max(length(story)) FROM leases_incident"
        )
        print(f"longest members and story: {row.fetchone()} characters")
    for one in incidents:
        print(one["sentence"], one["cause"], one["lease_count"], one["changes"], one["ended"])
    print(f"changes of nodes by cause: {counts}")
    print(
        f"lag: metric {told.metric:.1f} s, JSON {told.json:.1f} s, page {told.page} of {told.looks}"
    )
    without = sum(number for (_, cause), number in counts.items() if cause is None)
    (one, *others) = incidents
    wrong = bool(others) or bool(without) or one["lease_count"] != nodes or not told.is_whole
    return int(wrong or one["changes"] != sum(counts.values()))


def measure(asked: Namespace, folder: Path) -> int:
    if asked.silence:
        return silence(asked, folder)
    latest = 2 * int(asked.expire)  # changes of the last two seconds
    with storm_and_server(asked, folder, expire=asked.expire) as (server, truth):
        wait_for(lambda: all_written(server, latest), what="what was there", seconds=120)
        usage, since = Usage(server.process.pid), time.time()
        seen = watch(server, asked.seconds)
        print(f"CPU {usage.share:.1f} % of one core, RSS {usage.memory():.0f} MiB")
        late = delays(truth, seen, since)
        print(f"API event to DOM: {spread(late)} ({len(late)} seen)")
        until = time.time() - 1
        time.sleep(SETTLE)
        wait_for(lambda: all_written(server, latest), what="the history", seconds=120)
    return check_history(folder / "data", truth, until)


if __name__ == "__main__":
    main(__doc__, measure, options)
