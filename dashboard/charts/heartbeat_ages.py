"""A histogram of the ages of the last renewals.

Widths are percent. Heights are pixels on a logarithmic scale, so that three late Leases show beside
130,000.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from leases.domain.phase import Phase

SPANS = 60  # bars
WHOLE = 1.5  # durations on the axis
TOP, FLOOR = 18.0, 94.0
MIN_HEIGHT = 5.0  # pixels of a bar of one
SHOWN = (Phase.HELD, Phase.LATE, Phase.EXPIRED)
USUAL_DURATION = 40.0  # seconds, the kubelet's; used if no heartbeat has a duration


class AgeBar(msgspec.Struct, frozen=True):
    """The Leases of one span of ages, coloured by their most frequent phase."""

    x: float
    width: float
    y: float
    height: float
    phase: str
    title: str


class AgesChart(msgspec.Struct, frozen=True):
    """`limit` is where the usual duration ends, `beyond` the width after it; both in percent."""

    bars: tuple[AgeBar, ...]
    labels: tuple[tuple[float, str, str], ...]  # x, text, CSS class that aligns it
    counts: tuple[tuple[str, int], ...]
    limit: float
    beyond: float
    finding: str


Ages = Mapping[tuple[int, Phase], int]


def spans(ages: Mapping[Phase, Iterable[float]], duration: float) -> Counter[tuple[int, Phase]]:
    per_second = SPANS / (WHOLE * duration)
    found: Counter[tuple[int, Phase]] = Counter()
    for phase, some in ages.items():
        for span, number in Counter([int(age * per_second) for age in some]).items():
            found[min(SPANS - 1, max(0, span)), phase] += number
    return found


def ages_chart(found: Ages, duration: float, *, of: str) -> AgesChart:
    """Draw the counts of `spans`; `of` names the counted things."""
    step = 100 / SPANS
    by_span: dict[int, dict[Phase, int]] = {}
    for (span, phase), number in sorted(found.items()):
        by_span.setdefault(span, {})[phase] = number
    most = max((sum(phases.values()) for phases in by_span.values()), default=1)
    bars = []
    for span, phases in by_span.items():
        number = sum(phases.values())
        height = MIN_HEIGHT + (FLOOR - TOP - 4 - MIN_HEIGHT) * math.log(number) / math.log(
            max(most, 2)
        )
        bars.append(
            AgeBar(
                x=round(span * step + 0.15, 2),
                width=round(step - 0.3, 2),
                y=round(FLOOR - height, 1),
                height=round(height, 1),
                phase=max(phases, key=lambda phase: phases[phase]).value,
                title=_title(span, phases, duration),
            )
        )
    counts = tuple(
        (phase.value, sum(n for (_, p), n in found.items() if p is phase)) for phase in SHOWN
    )
    said = ", ".join(f"{number:,} {word}" for word, number in counts)
    total = sum(found.values())
    finding = f"Age of the last renewal of {total:,} {of}: {said}"
    limit = round(100 / WHOLE, 2)
    return AgesChart(tuple(bars), _labels(duration), counts, limit, 100 - limit, finding)


def _title(span: int, phases: Mapping[Phase, int], duration: float) -> str:
    width = WHOLE * duration / SPANS
    until = f"{(span + 1) * width:g} s" if span < SPANS - 1 else "more"
    said = ", ".join(f"{number:,} {phase.value}" for phase, number in phases.items())
    return f"{span * width:g} s to {until}: {said}"


def _labels(duration: float) -> tuple[tuple[float, str, str], ...]:
    """Labels at quarters of the duration and at the open end."""
    quarters = range(1, 5)
    return (
        (0, "0 s", ""),
        *(
            (round(quarter * 25 / WHOLE, 2), f"{duration * quarter / 4:g} s", "mid")
            for quarter in quarters
        ),
        (100, f"{WHOLE * duration:g} s and more", "end-anchor"),
    )
