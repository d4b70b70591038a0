"""Compares what Leaseboard remembers with what a leasestorm did.

python3 -m tests.benchmarks.parts.storm_check TRUTH HISTORY [--until EPOCH] [--settling 10]

TRUTH is the log of `leasestorm.py --truth`, HISTORY the output of `export_history`. Prints what was
made, found, missing, late, doubled, different and extra as JSON; exits 1 unless all of the last
five are none. `--until` is when the watch ended: what happened later is not asked for. An expiry is
late if its `at` is: a Lease runs out by the moment at which its renewal was read.

Between a 410 and the list that follows it no event comes. Changes of one Lease in that time
may be one inferred change, which counts as `merged` if it leads to the same holder. `--settling`:
seconds before and after the list in which that may be; as many as the slowest list takes.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks.parts.storm_truth import (
    LATE,
    TOLERANCE,
    WORDS,
    Event,
    History,
    UnseenSpan,
    read,
    seconds,
    silences,
    unseen_spans,
)

SETTLING = 10.0  # seconds
WRONG = ("missing", "late", "doubled", "different", "extra")


@dataclass
class Findings:
    """What the comparison found, by what was looked for."""

    made: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    merged: int = 0
    inferred: int = 0
    missed: int = 0
    largest_error: float = 0.0
    wrong: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def summary(self) -> dict[str, Any]:
        return {
            "made": dict(sorted(self.made.items())),
            "found": dict(sorted(self.found.items())),
            **{what: len(self.wrong[what]) for what in WRONG},
            "merged after a 410": self.merged,
            "inferred": self.inferred,
            "missed by the counter": self.missed,
            "largest error of an expiry in s": round(self.largest_error, 3),
            "first": {what: lines[:5] for what, lines in self.wrong.items() if lines},
        }

    @property
    def clean(self) -> bool:
        return not any(self.wrong.values())


def compare(
    truth: list[Event], changes: list[Event], *, until: float, settling: float = SETTLING
) -> Findings:
    """Everything the storm did before `until`, looked for in the history."""
    findings = Findings()
    history = History(changes)
    spans = unseen_spans(truth, settling)
    begin = next(event for event in truth if event["kind"] == "storm.watch")
    for event in truth:
        if event["kind"] not in WORDS or event["kind"] == "resumed":
            continue
        if event["t"] <= until and int(event["rv"]) > int(begin["rv"]):
            _look_for(event, history, findings, spans)
    for silent, resumed in silences(truth):
        if resumed is None or int(resumed["rv"]) > int(begin["rv"]):
            span = (begin["t"], until)
            _look_for_expiry(silent, resumed, history, findings, span=span, unseen=spans)
    _judge_rest(history, findings, until=until, unseen=spans)
    findings.inferred = sum(c["inferred"] for c in changes) - findings.found["first sight"]
    findings.missed = sum(c["missed"] for c in changes)
    return findings


def _look_for(event: Event, history: History, findings: Findings, spans: list[UnseenSpan]) -> None:
    kind, key, version = event["kind"], event["key"], event["rv"]
    findings.made[kind] += 1
    found = history.take(key, version, WORDS[kind])
    line = f"{kind} {key}@{version}"
    if len(found) > 1:
        findings.wrong["doubled"].append(line)
    if found and _agrees(event, found[0]):
        findings.found[kind] += 1
    elif _merged(event, history, spans):
        findings.merged += 1
    elif found:
        findings.wrong["different"].append(f"{line}: {found[0]}")
    else:
        findings.wrong["missing"].append(line)


def _agrees(event: Event, change: Event) -> bool:
    if change["holder"] != (event["to"] or None):
        return False
    if event["kind"] in {"deleted", "created"} and change["uid"] != event["uid"]:
        return False
    return event["kind"] == "created" or change["previous_holder"] == (event["from"] or None)


def _merged(event: Event, history: History, spans: list[UnseenSpan]) -> bool:
    """Whether the API showed it only in a list, and the history holds what that list showed: the
    list of the next start where a process was killed before it wrote what it had listed.
    """
    for span in spans:
        if span.since < int(event["rv"]) <= span.until and event["key"] in span.last:
            known = history.by_key[event["key"]]
            before = [c for c in known if seconds(c["observed_at"]) <= span.ended]
            last = span.last[event["key"]] or None
            shown = [c for c in known if span.shows(c)]
            if any(c["holder"] == last for c in (*shown, *before[-3:])):
                return True
    return False


def _look_for_expiry(
    silent: Event,
    resumed: Event | None,
    history: History,
    findings: Findings,
    *,
    span: tuple[float, float],
    unseen: list[UnseenSpan],
) -> None:
    since, until = span
    due = seconds(silent["lastRenew"]) + silent["duration"]
    line = f"{silent['key']} silent since {silent['lastRenew']}, duration {silent['duration']}"
    passed_by = any(s.has(due) and resumed and resumed["t"] <= s.ended for s in unseen)
    if passed_by or due < since or due + TOLERANCE > min(until, resumed["t"] if resumed else until):
        history.take_expiry(silent["key"], due)  # may or may not have been seen to run out
        if resumed:
            history.take(silent["key"], resumed["rv"], ["recovered"])
        return
    findings.made["expired"] += 1
    found = history.take_expiry(silent["key"], due)
    if not found and (late := history.take_expiry(silent["key"], due, LATE)):
        findings.wrong["late"].append(f"expired {line}: {late[0]['at']}")
    elif not found:
        findings.wrong["missing"].append(f"expired {line}")
    elif len(found) > 1:
        findings.wrong["doubled"].append(f"expired {line}")
    else:
        findings.found["expired"] += 1
        error = abs(seconds(found[0]["at"]) - due)
        findings.largest_error = max(findings.largest_error, error)
    if resumed and resumed["t"] <= until:
        findings.made["recovered"] += 1
        back = history.take(silent["key"], resumed["rv"], ["recovered"])
        findings.found["recovered"] += bool(back)
        if not back and _overtaken(resumed, history, unseen):
            findings.merged += 1
            return
        if not back and (back := _shown_by_a_list(resumed, history, unseen)):
            findings.merged += 1
        if len(back) != 1:
            what = "doubled" if back else "missing"
            findings.wrong[what].append(f"recovered {silent['key']}@{resumed['rv']}")


def _overtaken(resumed: Event, history: History, unseen: list[UnseenSpan]) -> bool:
    """Whether a list that came next showed another holder already, and the history holds that."""
    spans = [s for s in unseen if s.since < int(resumed["rv"]) <= s.until]
    back = resumed["to"]
    passed_on = any(span.last.get(resumed["key"], back) != back for span in spans)
    return passed_on and _merged(resumed, history, spans)


def _shown_by_a_list(resumed: Event, history: History, unseen: list[UnseenSpan]) -> list[Event]:
    """The recovery that a list showed of a Lease of which no event came."""
    spans = [s for s in unseen if s.since < int(resumed["rv"]) <= s.until]
    return [
        change
        for change in history.by_key[resumed["key"]]
        if change["change"] == "recovered" and any(span.shows(change) for span in spans)
    ]


def _judge_rest(
    history: History, findings: Findings, *, until: float, unseen: list[UnseenSpan]
) -> None:
    """What nobody asked for: the first sight of each Lease is right, anything else is extra."""
    seen: Counter[str] = Counter()
    for change in history.unasked.values():
        key = f"{change['namespace']}/{change['name']}"
        if change["change"] == "created" and change["inferred"] and not seen[key]:
            seen[key] += 1
            findings.found["first sight"] += 1
        elif change["inferred"] and any(s.has(seconds(change["observed_at"])) for s in unseen):
            findings.found["shown by a list"] += 1
        elif seconds(change["observed_at"]) <= until:
            word, version = change["change"], change["resource_version"]
            findings.wrong["extra"].append(f"{word} {key}@{version} at {change['at']}")


def main() -> int:
    parser = ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("truth", type=Path)
    parser.add_argument("history", type=Path)
    parser.add_argument("--until", type=float, default=float("inf"))
    parser.add_argument("--settling", type=float, default=SETTLING)
    asked = parser.parse_args()
    truth = read(asked.truth)
    until = min(asked.until, truth[-1]["t"])
    findings = compare(truth, read(asked.history), until=until, settling=asked.settling)
    print(json.dumps(findings.summary, indent=1))
    return 0 if findings.clean else 1


if __name__ == "__main__":
    sys.exit(main())
