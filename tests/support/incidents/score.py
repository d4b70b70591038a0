"""Compare what a casebook told with the truth of a recording, and print it as a table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from leases.domain.cause.clue import Clue
from leases.domain.incident import Confidence, Incident
from tests.support.incidents.play import Played
from tests.support.incidents.recording import Recording

SAME = timedelta(seconds=5)  # our moment of a change may differ this much from the truth's
TOLD = (Confidence.CERTAIN, Confidence.LIKELY)


class Score:
    """Of one recording."""

    def __init__(self, recording: Recording, played: Played) -> None:
        self.recording = recording.name
        self.total: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.false: Counter[str] = Counter()  # causes told as certain or likely that were none
        self.wrong_certain: list[str] = []
        self.missed: list[str] = []
        self.innocent: list[str] = []  # incidents of changes that belong to none
        self.merged: list[str] = []
        self.split: list[str] = []
        truth = {one["id"]: one for one in recording.truth["incidents"]}
        owner = _owners(recording.truth["changes"], played)
        for incident in played.incidents:
            self._judge(incident, truth, owner)
        self._look_for(truth, owner, played.incidents)

    def _judge(
        self, incident: Incident, truth: dict[str, Any], owner: dict[tuple[str, str], str | None]
    ) -> None:
        owners = Counter(owner.get((str(one.lease), one.identity)) for one in incident.members)
        line = f"{incident.cause} {incident.confidence}: {incident.sentence}"
        known = [name for name in owners if name is not None]
        if not known:
            self.innocent.append(line)
            self.false[incident.cause] += incident.confidence in TOLD
            return
        if len(known) > 1:
            self.merged.append(f"{sorted(known)}: {line}")
        causes = {truth[name]["cause"] for name in known}
        if incident.confidence in TOLD and incident.cause not in causes:
            self.false[incident.cause] += 1
            self.missed.append(f"false {sorted(known)}: {line}")
            if incident.confidence is Confidence.CERTAIN:
                self.wrong_certain.append(f"{sorted(known)}: {line}")

    def _look_for(
        self,
        truth: dict[str, Any],
        owner: dict[tuple[str, str], str | None],
        incidents: Iterable[Incident],
    ) -> None:
        parts: dict[str, list[tuple[int, Incident, bool]]] = defaultdict(list)
        for incident in incidents:
            owners = Counter(owner.get((str(one.lease), one.identity)) for one in incident.members)
            owners.pop(None, None)
            for name, count in owners.items():
                if name is not None:
                    parts[name].append((count, incident, len(owners) > 1))
        sizes = Counter(name for name in owner.values() if name is not None)
        for name, one in truth.items():
            self.total[one["cause"]] += 1
            mine = parts[name]
            if len(mine) > 1:
                self.split.append(f"{name} into {len(mine)}")
            right = any(
                count * 2 > sizes[name]
                and not merged
                and incident.cause == one["cause"]
                and incident.confidence in TOLD
                for count, incident, merged in mine
            )
            self.found[one["cause"]] += right
            if not right:
                told = "; ".join(f"{i.cause} {i.confidence} {n}: {i.sentence}" for n, i, _ in mine)
                self.missed.append(f"{name} ({one['cause']}, {sizes[name]}): {told or 'nothing'}")


def _owners(changes: list[dict[str, Any]], played: Played) -> dict[tuple[str, str], str | None]:
    """The true incident of each of our changes; None: innocent."""
    left = defaultdict(list)
    for one in changes:
        left[one["lease"], one["change"]].append((datetime.fromisoformat(one["at"]), one))
    owners: dict[tuple[str, str], str | None] = {}
    for clue in played.clues:
        same = left[str(clue.key), clue.change.change.value]
        near = [one for one in same if abs(one[0] - clue.change.at) <= SAME]
        best = min(near, key=lambda one: abs(one[0] - clue.change.at), default=None)
        if best is not None:
            same.remove(best)
            owners[str(clue.key), clue.identity] = best[1]["incident"]
        elif clue.change.inferred:
            owners[str(clue.key), clue.identity] = _in_its_window(changes, clue)
    return owners


def _in_its_window(changes: list[dict[str, Any]], clue: Clue) -> str | None:
    """The true incident of what is only known to have happened within a window."""
    since, until = clue.change.inferred_since, clue.change.observed_at
    for one in changes:
        at = datetime.fromisoformat(one["at"])
        inside = (since is None or since - SAME <= at) and at <= until + SAME
        if one["lease"] == str(clue.key) and one["incident"] and inside:
            found: str = one["incident"]
            return found
    return None


def table(scores: list[Score]) -> str:
    """Recordings by causes: found of all, and falsely told after a plus."""
    causes = sorted({cause for score in scores for cause in (*score.total, *score.false)})
    lines = [["", *(score.recording for score in scores), "all"]]
    for cause in [*causes, None]:
        row = [cause or "all causes"]
        cells = [_counts(score, cause) for score in scores]
        cells.append(tuple(map(sum, zip(*cells, strict=True))))  # type: ignore[arg-type]
        for found, total, false in cells:
            text = f"{found}/{total}" if total or false else ""
            row.append(f"{text} +{false} false" if false else text)
        lines.append(row)
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _counts(score: Score, cause: str | None) -> tuple[int, int, int]:
    if cause is None:
        return score.found.total(), score.total.total(), score.false.total()
    return score.found[cause], score.total[cause], score.false[cause]
