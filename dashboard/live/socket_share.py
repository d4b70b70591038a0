"""Limit how many sockets one account, wall link or API token may have open in this process."""

from __future__ import annotations

from collections import Counter

from dashboard.access.rights.rights import Right, TokenRight, UserRight

MAX_SOCKETS = 500
TOO_MANY = f"{MAX_SOCKETS} live connections are open for this account. Close some pages."

SocketOwner = tuple[str, int]


class SocketShare:
    """Count open sockets per owner, so that no account takes all sockets of the port."""

    def __init__(self) -> None:
        self._open: Counter[SocketOwner] = Counter()

    def take(self, right: Right) -> bool:
        """Count one more, or return False at the limit."""
        holder = _holder(right)
        if self._open[holder] >= MAX_SOCKETS:
            return False
        self._open[holder] += 1
        return True

    def give_back(self, right: Right) -> None:
        holder = _holder(right)
        self._open[holder] -= 1
        if not self._open[holder]:
            del self._open[holder]


def _holder(right: Right) -> SocketOwner:
    if isinstance(right, TokenRight):
        return ("token", right.token_id)
    return ("user", right.user_id) if isinstance(right, UserRight) else ("wall", right.link_id)
