"""What the process holds in memory, so that neither collecting nor keeping garbage costs much."""

from __future__ import annotations

import ctypes
import gc


def keep_what_is_loaded() -> None:
    """What is loaded by now stays: looking through it for garbage would hold up the loop."""
    gc.freeze()


def give_back() -> None:
    """Return to the system what malloc keeps free though nobody needs it.

    After a list of 130,000 Leases that is 26 MB in many pieces. Only glibc has to be asked.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Leftovers:
    """What a list needed: nobody does once all it told is written down."""

    def __init__(self) -> None:
        self._lists = 0

    def are_free(self, lists: int, *, waiting: int) -> bool:
        """Whether there are some, the first time that this is asked after a list; `waiting` is the
        number of changes still to be written.
        """
        if lists == self._lists or waiting:
            return False
        self._lists = lists
        return True
