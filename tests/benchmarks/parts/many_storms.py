"""Many leasestorms in one process, each the Lease API of a cluster of its own.

python3 -m tests.benchmarks.parts.many_storms FOLDER FAULTS PORT... -- [OPTIONS OF LEASESTORM]

Cluster number N listens on the Nth port and writes what it did to FOLDER/truth-N. Ends when each
has been asked to quit.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

from tests.benchmarks import leasestorm


async def play(folder: Path, ports: list[str], options: list[str], faults: int) -> None:
    """The first `faults` clusters cut every watch again and again."""
    storms = []
    for number, port in enumerate(ports):
        own = ["--port", port, "--truth", str(folder / f"truth-{number}"), "--seed", str(number)]
        if number < faults:
            own += ["--drop-every", "7", "--gone-every", "17"]
        asked = leasestorm.arguments([*options, *own])
        storms.append(leasestorm.amain(asked, leasestorm.World(asked)))
    gc.freeze()
    await asyncio.gather(*storms)


if __name__ == "__main__":
    split = sys.argv.index("--")
    folder, faults, *ports = sys.argv[1:split]
    asyncio.run(play(Path(folder), ports, sys.argv[split + 1 :], int(faults)))
