"""A thousand watchers and one among them that never reads.

python3 -m tests.benchmarks.slow_reader [WATCHERS]

Starts the embedded Lease API and writes until it cuts the watch that nobody reads. Prints the
server's memory, and what the others were told.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.apiserver.clients import Process
from tests.apiserver.watch.crowd import outlast_a_reader_that_never_reads


def main() -> None:
    watchers = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder, Process(Path(folder) / "data") as api:
        found = asyncio.run(outlast_a_reader_that_never_reads(api, watchers=watchers))
    missed = sum(told != found.written for told in found.told)
    print(
        f"{watchers} watchers, {len(found.written)} events for all: "
        f"{missed} of them missed any; the one that never reads was "
        f"{'cut' if found.cut else 'NOT cut'}\n"
        f"RSS: {found.before:.0f} MiB with all watches open, {found.most:.0f} MiB at most"
    )


if __name__ == "__main__":
    main()
