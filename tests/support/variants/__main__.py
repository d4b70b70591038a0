"""Play made and altered recordings, print what is found, or write them as files.

`python -m tests.support.variants [--write DIRECTORY] [NAME]...` with names such as `mixed-7`,
`drain-3` or `altered-2`; without a name, those of the suite.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from tests.support.incidents.play import play
from tests.support.incidents.score import Score, table
from tests.support.variants.made import Made
from tests.support.variants.suite import SUITE, variants

KINDS_OF_ERROR = ("wrong_certain", "innocent", "merged", "split", "missed")


async def main(names: list[str], directory: Path | None) -> None:
    found = [one for name in names for one in variants(name)]
    if directory is not None:
        for one in found:
            if isinstance(one, Made):
                one.write(directory)
        return
    for alone in (False, True):
        print("\nFrom Leases alone" if alone else "With Pods, Nodes and Events")
        scores = [Score(one, play(one, alone=alone)) for one in found]
        print(table(scores))
        for score in scores:
            for word in KINDS_OF_ERROR:
                for line in getattr(score, word):
                    print(f"  {score.recording}: {word.replace('_', ' ')}: {line}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="DIRECTORY")
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    asyncio.run(main(given.names or list(SUITE), given.write))
