"""Raise the limit of open files: each connection needs one."""

from __future__ import annotations

import resource

FALLBACK_FILES = 65_536


def allow_open_files() -> int:
    """Raise the soft limit to the hard one, as Go programs do. Returns the resulting limit.

    The usual soft limit is 1024, for old programs that use select().
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FALLBACK_FILES if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return max(FALLBACK_FILES, soft)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):  # the kernel's own limit is lower than the hard limit
        return soft
    return wanted
