"""Process large bodies in a thread, so that other requests do not wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

# Processing a smaller body takes less time than waking a thread.
LARGE = 64 * 1024
P = ParamSpec("P")
T = TypeVar("T")


async def aside(size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that processes `size` bytes; above LARGE in a thread."""
    if size <= LARGE:
        return function(*args, **kwargs)
    return await asyncio.to_thread(function, *args, **kwargs)
