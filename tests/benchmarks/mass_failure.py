"""A thousand heartbeats a second stop, run out and come back: does anything else wait for them?

python3 -m tests.benchmarks.mass_failure [--leases 130000] [--elections 2000] [--rate 13000]
    [--expire 1000] [--seconds 150]

Starts leasestorm and `manage.py serve --no-demo`, and opens the list of elections in a Chromium.
Prints the delay from the storm's own log of a change of holder to the change of its row, while at
least 40,000 Leases run out and recover, and whether `export_history` holds exactly what happened
(storm_check.py). Exits 1 if not.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from tests.benchmarks.parts.chromium import Seen, delays, watched_elections
from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.figures import Usage, spread
from tests.benchmarks.parts.open_pages import Pages
from tests.benchmarks.parts.storm_load import (
    SETTLE,
    all_written,
    calm_options,
    check_history,
    storm_and_server,
)
from tests.support.processes import Server, wait_for


def options(parser: ArgumentParser) -> None:
    calm_options(parser, seconds=150)
    parser.add_argument("--expire", type=float, default=1000)


def watch(server: Server, seconds: float) -> Seen:
    """The changes of holder that a browser shows within so many seconds."""
    with watched_elections(Pages(server)) as page:
        page.wait_for_timeout(seconds * 1000)
        seen: Seen = page.evaluate("window.seen")
    return seen


def measure(asked: Namespace, folder: Path) -> int:
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
