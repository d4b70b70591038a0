"""Changes wait in memory while the database refuses writes, up to a limit. Later ones are lost.

A loss is always reported: it must never look like a quiet time.
"""

from __future__ import annotations

MAX_WAITING = 500_000  # changes; the first list of a large cluster makes 130,000 at once
_WAY_OUT = "Make room on the disk or repair the database: waiting changes are written then."


class Backlog:
    """Why nothing can be written, and what was lost."""

    def __init__(self, most: int = MAX_WAITING) -> None:
        self.most = most
        self.error: str | None = None
        self.lost: dict[str, int] = {}  # lost changes, by cluster
        self.let_names_go = False  # names of deleted Leases were dropped
        self._warned = False

    def is_near(self, waiting: int) -> bool:
        """Whether half of the limit is reached."""
        return waiting >= self.most // 2

    def warns(self, waiting: int) -> bool:
        """Return True once each time the limit comes near."""
        near = self.is_near(waiting)
        warns, self._warned = near and not self._warned, near
        return warns

    def says(self, waiting: int) -> str | None:
        """Describe the problem for the pages; None when all is well."""
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
                ". Many Leases came and went, so the names of deleted ones are not kept. Their "
                "stored states are deleted once the database is back; nothing is lost by it"
            )
        return f"{said}. {_WAY_OUT}"
