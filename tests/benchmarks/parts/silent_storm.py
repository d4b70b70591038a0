"""leasestorm whose nodes all fall silent on SIGUSR1, and renew again after SIGUSR2."""

from __future__ import annotations

import signal
import sys
from typing import Any

from tests.benchmarks import leasestorm


class World(leasestorm.World):  # type: ignore[misc]
    def __init__(self, asked: Any) -> None:
        super().__init__(asked)
        signal.signal(signal.SIGUSR1, lambda *_: self.silent.update(self.nodes))
        signal.signal(signal.SIGUSR2, lambda *_: self.silent.difference_update(self.nodes))


if __name__ == "__main__":
    leasestorm.World = World
    sys.exit(leasestorm.main())
