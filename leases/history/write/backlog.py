"""What happens to changes while the database does not take them: they wait in memory, up to a
limit, and those that find no room are lost, which is said and never passed off as quiet.
"""

from __future__ import annotations

MAX_WAITING = 500_000  # changes; the first list of a large cluster makes 130,000 at once
_WAY_OUT = "Make room on the disk or repair the database: what waits is written as soon as it can."


class Backlog:
    """Why nothing can be written, if so, and what was lost by it."""

    def __init__(self, most: int = MAX_WAITING) -> None:
        self.most = most
        self.error: str | None = None
        self.lost: dict[str, int] = {}  # changes, by the clusters whose changes find no room now
        self.let_names_go = False  # of deleted Leases, since the database failed
        self._warned = False

    def is_near(self, waiting: int) -> bool:
        """Whether half of the room is taken; from then on it is said."""
        return waiting >= self.most // 2

    def warns(self, waiting: int) -> bool:
        """True once each time that the limit comes near."""
        near = self.is_near(waiting)
        warns, self._warned = near and not self._warned, near
        return warns

    def says(self, waiting: int) -> str | None:
        """For whoever looks at a page; None when all is well."""
        if self.error is None:
            return None
        said = f"History cannot be written: {self.error}. {waiting:,} changes wait in memory"
        lost = sum(self.lost.copy().values())  # the loop may add a cluster
        if lost:
            said += f", as many as may; {lost:,} later ones are lost"
        elif self.is_near(waiting):
            said += f"; from {self.most:,} on they are lost"
        if self.let_names_go:
            said += (
                ". So many Leases came and went that the names of deleted ones are not kept: their "
                "stored states are looked for and deleted once it is back; nothing is lost by it"
            )
        return f"{said}. {_WAY_OUT}"
