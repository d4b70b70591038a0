"""Reading large data without keeping everybody else waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

# Nearly every body is far smaller, and is read faster than a thread is woken.
LARGE = 64 * 1024
P = ParamSpec("P")
T = TypeVar("T")


async def aside(size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the function makes of `size` bytes; in a thread of its own when they are many."""
    if size <= LARGE:
        return function(*args, **kwargs)
    return await asyncio.to_thread(function, *args, **kwargs)
