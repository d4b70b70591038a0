"""Every cause and every confidence has its words, and symbols that the sprite has."""

from __future__ import annotations

from pathlib import Path

from dashboard.parts.cause_words import (
    CAUSE_ICONS,
    CAUSE_MEANINGS,
    CAUSE_WORDS,
    CONFIDENCE_BARS,
    CONFIDENCE_MEANINGS,
    SOURCE_WORDS,
)
from leases.domain.incident import Cause, Confidence, Source

SPRITE = Path(__file__).parents[2] / "templates/_sprite.html"


def test_every_cause_has_a_word_of_its_own_and_a_symbol():
    assert set(CAUSE_WORDS) == set(CAUSE_MEANINGS) == set(CAUSE_ICONS) == set(Cause)
    assert len(set(CAUSE_WORDS.values())) == len(Cause)
    sprite = SPRITE.read_text()
    assert [name for name in CAUSE_ICONS.values() if f'id="{name}"' not in sprite] == []


def test_every_confidence_and_source_has_words():
    assert set(CONFIDENCE_MEANINGS) == set(CONFIDENCE_BARS) == set(Confidence)
    assert set(SOURCE_WORDS) == set(Source)
