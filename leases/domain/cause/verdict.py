"""What a rule concludes, and the words its sentences are made of."""

from __future__ import annotations

from datetime import datetime

import msgspec

from leases.domain.cause.incident import Cause, Confidence, Evidence, Source


class Verdict(msgspec.Struct, frozen=True):
    """A cause with its sentence. The evidence is the sentence itself and what else was seen."""

    cause: Cause
    confidence: Confidence
    sentence: str
    evidence: tuple[Evidence, ...] = ()
    writer: str | None = None


def certain(cause: Cause, sentence: str, *evidence: Evidence) -> Verdict:
    return Verdict(cause, Confidence.CERTAIN, sentence, evidence)


def likely(cause: Cause, sentence: str, *evidence: Evidence) -> Verdict:
    return Verdict(cause, Confidence.LIKELY, sentence, evidence)


def possible(cause: Cause, sentence: str, *evidence: Evidence) -> Verdict:
    return Verdict(cause, Confidence.POSSIBLE, sentence, evidence)


def seen(source: Source, sentence: str) -> Evidence:
    return Evidence(sentence, source)


def clock(moment: datetime) -> str:
    """A time of day in UTC: 03:12:31."""
    return f"{moment:%H:%M:%S}"


def span(seconds: float) -> str:
    """A length of time: 0.4 s, 12 s, 3 min 20 s."""
    seconds = max(0.0, seconds)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def some(names: list[str], most: int = 3) -> str:
    """A list of names in words, cut where it gets long."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
