"""A thousand watchers and one among them that never reads.

python3 -m tests.benchmarks.slow_reader [WATCHERS]

Starts the embedded Lease API and writes until it cuts the watch that nobody reads. Prints the
server's memory, and how many of the others missed an event.
"""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace
from pathlib import Path

from tests.apiserver.clients import Process
from tests.apiserver.watch.crowd import outlast_a_reader_that_never_reads
from tests.benchmarks.parts.command import main


def options(parser: ArgumentParser) -> None:
    parser.add_argument("watchers", nargs="?", type=int, default=1000)


def measure(asked: Namespace, folder: Path) -> None:
    with Process(folder / "data") as api:
        found = asyncio.run(outlast_a_reader_that_never_reads(api, watchers=asked.watchers))
    missed = sum(heard != found.written for heard in found.received)
    print(
        f"{asked.watchers} watchers, {len(found.written)} events for all: "
        f"{missed} of them missed any; the one that never reads was "
        f"{'cut' if found.cut else 'NOT cut'}\n"
        f"RSS: {found.before:.0f} MiB with all watches open, {found.most:.0f} MiB at most"
    )


if __name__ == "__main__":
    main(__doc__, measure, options)
