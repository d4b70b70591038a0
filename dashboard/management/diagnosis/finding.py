"""What one check found, and what to do about it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from leases.kube.failure_sentences import advise
from leases.wire.status import ApiError


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`found` and `do` are sentences; `do` is empty where nothing is to be done."""

    check: str
    level: Level
    found: str
    do: str = ""
    cluster: str = ""

    @property
    def line(self) -> str:
        where = f"cluster {self.cluster}, {self.check}" if self.cluster else self.check
        return f"{self.level:<8} {where}: {self.found} {self.do}".rstrip()


def worst(findings: list[Finding]) -> Level:
    levels = {finding.level for finding in findings}
    return next((level for level in reversed(Level) if level in levels), Level.OK)


def from_api_error(check: str, cluster: str, host: str, error: ApiError) -> Finding:
    """A problem in the words of the pages: what happened, then what to do."""
    found, _, do = advise(host, error).partition(". ")
    return Finding(
        check=check, level=Level.PROBLEM, found=f"{found.rstrip('.')}.", do=do, cluster=cluster
    )
