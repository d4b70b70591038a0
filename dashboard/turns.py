"""Whose turn it is to use the interpreter: pages are made one by one, and after the watches.

Threads share one interpreter with the loop that reads the watches. With many of them at work it
would come too late, and an API server cuts a watch that is not read.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from threading import Lock

from dashboard.watched import WatchedCluster

LATE = 0.25  # seconds for which a watch may wait to be read before pages wait for it
LONGEST = 2.0  # seconds: a watch that stays late is no reason to show nothing
LOOK = 0.02  # seconds between two looks at the watches

_turn = Lock()


@contextmanager
def page_turn(clusters: Collection[WatchedCluster]) -> Iterator[None]:
    """Make a page meanwhile. Blocks: not for the event loop."""
    with _turn:
        until = time.monotonic() + LONGEST
        while time.monotonic() < until and any(one.untold() > LATE for one in clusters):
            time.sleep(LOOK)
        yield
