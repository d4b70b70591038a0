"""The changes of a watch of Leases by docs/words.md, judged by arrival times.

Written apart from the tracker, so that a mistake there does not repeat itself in the truth.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from tests.support.incidents.recording import Line

Change = dict[str, Any]


class _Known:
    def __init__(self, seen: dict[str, Any], at: datetime, *, listed: bool = False) -> None:
        self.uid = seen["metadata"]["uid"]
        self.spec = seen.get("spec", {})
        self.labels = self._labels(seen)
        renewed = self.spec.get("renewTime")
        self.observed = at
        if listed and renewed:
            self.observed = min(at, datetime.fromisoformat(renewed))
        self.expired = False

    @staticmethod
    def _labels(seen: dict[str, Any]) -> Any:
        meta = seen["metadata"]
        return meta.get("labels"), meta.get("annotations")

    @property
    def holder(self) -> str | None:
        return self.spec.get("holderIdentity") or None

    @property
    def deadline(self) -> datetime | None:
        seconds = self.spec.get("leaseDurationSeconds")
        if not self.holder or not seconds or not self.spec.get("renewTime") or self.expired:
            return None
        return self.observed + timedelta(seconds=seconds)

    def write(self, seen: dict[str, Any], at: datetime) -> str | None:
        """Take a write, and return the change that it was."""
        spec, labels = seen.get("spec", {}), self._labels(seen)
        before, held, expired = self.spec, self.holder, self.expired
        times = ("holderIdentity", "acquireTime", "renewTime", "leaseDurationSeconds")
        moved = any(before.get(one) != spec.get(one) for one in times)
        other = labels != self.labels or any(
            before.get(one) != spec.get(one)
            for one in ("leaseDurationSeconds", "strategy", "preferredHolder")
        )
        self.spec, self.labels = spec, labels
        if moved:
            self.observed, self.expired = at, False
        if held != self.holder:
            if held is None:
                return "acquired"
            if self.holder is None:
                return "released"
            return "taken_over" if expired else "replaced"
        if held and moved and before.get("acquireTime") != spec.get("acquireTime"):
            return "restarted"
        if held and moved and expired:
            return "recovered"
        return "reconfigured" if other else None


class _Follower:
    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._known: dict[str, _Known] = {}
        self._listed = True

    def take(self, line: Line) -> None:
        event = json.loads(line.body)
        if event["type"] == "BOOKMARK":
            self._listed = False
            return
        meta = event["object"]["metadata"]
        lease = f"{meta['namespace']}/{meta['name']}"
        self.run_out(lease, line.at)
        if event["type"] == "DELETED":
            if self._known.pop(lease, None) is not None:
                self._add(line.at, lease, "deleted")
            return
        known = self._known.get(lease)
        if known is not None and known.uid != meta["uid"]:
            self._add(line.at, lease, "deleted")
            known = None
        if known is None:
            self._known[lease] = _Known(event["object"], line.at, listed=self._listed)
            self._add(line.at, lease, "created")
        elif (change := known.write(event["object"], line.at)) is not None:
            self._add(line.at, lease, change)

    def run_out(self, lease: str, until: datetime) -> None:
        known = self._known.get(lease)
        if known is not None and (deadline := known.deadline) is not None and deadline <= until:
            known.expired = True
            self._add(deadline, lease, "expired")

    def end(self, at: datetime) -> None:
        for lease in self._known:
            self.run_out(lease, at)

    def _add(self, at: datetime, lease: str, change: str) -> None:
        self.changes.append({"lease": lease, "at": at, "change": change, "incident": None})


def true_changes(lines: Iterable[Line], ended: datetime) -> list[Change]:
    follower = _Follower()
    for line in lines:
        follower.take(line)
    follower.end(ended)
    return sorted(follower.changes, key=lambda one: one["at"])
