"""Print how many incidents of recordings are found: `python -m tests.support.incidents [DIR]`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.support.incidents.play import play
from tests.support.incidents.recording import RECORDED, recordings
from tests.support.incidents.score import Score, table


async def main(directory: Path) -> None:
    for alone in (False, True):
        scores = [Score(one, play(one, alone=alone)) for one in recordings(directory)]
        print("\nFrom Leases alone" if alone else "With Pods, Nodes and Events")
        print(table(scores))
        for score in scores:
            for word in ("wrong_certain", "innocent", "merged", "split", "missed"):
                for line in getattr(score, word):
                    print(f"  {score.recording}: {word.replace('_', ' ')}: {line}")


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("LEASEBOARD_RECORDINGS")
    asyncio.run(main(Path(given) if given else RECORDED))
