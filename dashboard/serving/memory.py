"""What the process holds in memory, so that neither collecting nor keeping garbage costs much."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

_M_ARENA_MAX = -8  # as in glibc's malloc.h


def keep_what_is_loaded() -> None:
    """What is loaded by now stays: looking through it for garbage would hold up the loop."""
    gc.freeze()


def share_one_heap() -> None:
    """Let threads that start from now on allocate where all do.

    glibc gives each a heap of its own, though they take turns anyway; each keeps megabytes free.
    """
    _ask_malloc("mallopt", _M_ARENA_MAX, 1)


def give_back() -> None:
    """Return to the system what malloc keeps free though nobody needs it.

    After a list of 130,000 Leases that is some 10 MB in many pieces.
    """
    _ask_malloc("malloc_trim", 0)


def _ask_malloc(what: str, *arguments: int) -> None:
    """What only glibc has to be told; others have no such function."""
    function: Any = getattr(ctypes.CDLL(None), what, None)
    if function is not None:
        function(*arguments)


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
