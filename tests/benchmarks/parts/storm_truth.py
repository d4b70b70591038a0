"""The log of a leasestorm, and the history that Leaseboard exported of it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

TOLERANCE = 1.0  # seconds between lastRenew + duration and the `at` of `expired`
LATE = 10.0  # seconds up to which that is a wrong `at`, not another expiry
WORDS = {
    "transition": {"taken_over", "replaced"},
    "released": {"released"},
    "acquired": {"acquired"},
    "deleted": {"deleted"},
    "created": {"created"},
    "resumed": {"recovered"},
}
Event = dict[str, Any]


def read(path: Path) -> list[Event]:
    with path.open() as lines:
        return [json.loads(line) for line in lines]


def seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


@dataclass(frozen=True)
class UnseenSpan:
    """A refused watch, up to where the next one began: in resourceVersions and in time."""

    since: int
    until: int
    began: float
    ended: float
    last: dict[str, str | None]  # who held what was changed meanwhile, at its end

    def has(self, moment: float) -> bool:
        return self.began <= moment <= self.ended

    def shows(self, change: Event) -> bool:
        """Whether the list at its end showed this: inferred, of a write in the span."""
        version = int(change["resource_version"] or 0)
        seen = self.has(seconds(change["observed_at"]))
        return change["inferred"] and seen and self.since < version <= self.until


def unseen_spans(truth: list[Event], settling: float) -> list[UnseenSpan]:
    """The times from which the API showed nothing but a list, and `settling` seconds about each.

    A watch that is refused is opened again from a list. A replay that is refused runs beside a
    newer watch, which was opened from its list already, or was refused just before.
    """
    spans: list[UnseenSpan] = []
    since: int | None = None
    newest = 0  # from where a watch was opened last
    written: list[tuple[int, float]] = [(0, 0.0)]
    changes = [e for e in truth if e["kind"] in WORDS and e["kind"] != "resumed"]

    def span(since: int, until: int, at: float) -> UnseenSpan:
        began = max(written_at for version, written_at in written if version <= since)
        last = {e["key"]: e["to"] for e in changes if since < int(e["rv"]) <= until}
        return UnseenSpan(since, until, began - settling, at + settling, last)

    for event in truth:
        kind, version = event["kind"], int(event.get("rv") or 0)
        if kind in WORDS:
            written.append((version, event["t"]))
        elif kind == "storm.410" and version < newest:
            spans.append(span(version, max(newest, since or 0), event["t"]))
        elif kind == "storm.410":
            since = version if since is None else min(since, version)
        elif kind == "storm.watch":
            if since is not None:
                spans.append(span(since, version, event["t"]))
                since = None
            newest = max(newest, version)
    return spans


class History:
    """The exported changes: each is asked for once, and what nobody asks for is extra."""

    def __init__(self, changes: Iterable[Event]) -> None:
        self.by_write: dict[tuple[str, str, str], list[Event]] = defaultdict(list)
        self.expired: dict[str, list[Event]] = defaultdict(list)
        self.by_key: dict[str, list[Event]] = defaultdict(list)
        self.unasked: dict[int, Event] = {}
        for change in changes:
            key = f"{change['namespace']}/{change['name']}"
            self.unasked[id(change)] = change
            self.by_key[key].append(change)
            if change["change"] == "expired":
                self.expired[key].append(change)
            else:
                self.by_write[key, change["resource_version"], change["change"]].append(change)

    def take(self, key: str, version: str, words: Iterable[str]) -> list[Event]:
        found = [c for word in words for c in self.by_write.get((key, version, word), ())]
        for change in found:
            self.unasked.pop(id(change), None)
        return found

    def take_expiry(self, key: str, at: float, within: float = TOLERANCE) -> list[Event]:
        """Those that ran out `within` seconds of `at`."""
        found = [c for c in self.expired[key] if abs(seconds(c["at"]) - at) <= within]
        for change in found:
            self.unasked.pop(id(change), None)
        return found


def silences(truth: list[Event]) -> Iterator[tuple[Event, Event | None]]:
    """Each `silent` with the `resumed` that ended it."""
    silent: dict[str, Event] = {}
    for event in truth:
        if event["kind"] == "silent":
            silent[event["key"]] = event
        elif event["kind"] == "resumed":
            yield silent.pop(event["key"]), event
    for event in silent.values():
        yield event, None
