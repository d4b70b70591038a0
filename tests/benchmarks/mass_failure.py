"""A thousand heartbeats a second stop, run out and come back: does anything else wait for them?

python3 -m tests.benchmarks.mass_failure [--leases 130000] [--elections 2000] [--rate 13000]
    [--expire 1000] [--seconds 150]

Starts leasestorm and `manage.py serve --no-demo`, and opens the list of elections in a Chromium.
Prints the delay from the storm's own log of a change of holder to the change of its row, while at
least 40,000 Leases run out and recover, and whether `export_history` holds exactly what happened
(storm_check.py). Exits 1 if not.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path

from tests.benchmarks.many_pages import delays, watched_in_chromium
from tests.benchmarks.storm import SETTLE, Pages, Usage, all_written, calm_storm, compare, storm
from tests.support.processes import Server, free_port, get, wait_for


def arguments() -> Namespace:
    parser = calm_storm(__doc__, seconds=150)
    parser.add_argument("--expire", type=float, default=1000)
    return parser.parse_args()


def watch(server: Server, seconds: float) -> list[tuple[str, str, float]]:
    """The changes of holder that a browser shows within so many seconds."""
    pages = Pages(server)
    pages.sign_in()
    with watched_in_chromium(pages) as page:
        page.wait_for_timeout(seconds * 1000)
        seen: list[tuple[str, str, float]] = page.evaluate("window.seen")
    return seen


def main() -> int:
    asked = arguments()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        port, truth = free_port(), folder / "truth"
        with storm(asked, port, truth, expire=asked.expire):
            source = f"storm=url:http://127.0.0.1:{port}"
            server = Server(folder / "data", "--no-demo", "--cluster", source)
            stack.callback(lambda: server.process.poll() is not None or server.interrupt())
            ready = f"{server.url}/readyz"
            wait_for(lambda: get(ready)[0] == 200, what="the list", seconds=180)
            latest = 2 * int(asked.expire)  # of a second
            wait_for(lambda: all_written(server, latest), what="what was there", seconds=120)
            usage, since = Usage(server.process.pid), time.time()
            seen = watch(server, asked.seconds)
            print(f"CPU {usage.share:.1f} % of one core, RSS {usage.memory('VmRSS'):.0f} MiB")
            late = delays(truth, seen, since)
            cuts = statistics.quantiles(late, n=20)
            print(
                f"API event to DOM: median {cuts[9]:.0f} ms, p95 {cuts[18]:.0f} ms, "
                f"worst {max(late):.0f} ms ({len(late)} seen)"
            )
            until = time.time() - 1
            time.sleep(SETTLE)
            wait_for(lambda: all_written(server, latest), what="the history", seconds=120)
        server.interrupt()
        return compare(folder, truth, until)


if __name__ == "__main__":
    sys.exit(main())
