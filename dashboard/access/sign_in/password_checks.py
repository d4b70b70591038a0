"""Which requests check a password, and how many do so at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PATHS = frozenset({"/sign-in/", "/admin/login/"})

# A check takes a core for a third of a second. Browsers that somebody has signed in with have a
# line of their own, which strangers cannot fill.
AT_ONCE = 1
WAITING = 8
# A flood from one address leaves room for others.
WAITING_PER_ADDRESS = 2
WAITING_PER_KNOWN_ADDRESS = 4


def checks_password(scope: Mapping[str, Any]) -> bool:
    """Whether the request carries a password to check."""
    return scope["method"] == "POST" and scope["path"] in PATHS
