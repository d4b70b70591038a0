"""Answers that cost are made once for many who ask, and anew when they have aged."""

from __future__ import annotations

import itertools

from dashboard.parts.kept.kept_answers import KeptAnswers


def test_an_answer_is_kept_and_made_anew_after_its_time():
    numbers = itertools.count()
    kept = KeptAnswers(least=60.0, share=0.0, most=4)
    assert [kept.get("a", lambda: next(numbers)) for _ in range(3)] == [0, 0, 0]
    aged = KeptAnswers(least=-1.0, share=0.0, most=4)
    assert [aged.get("a", lambda: next(numbers)) for _ in range(2)] == [1, 2]


def test_of_too_many_answers_the_oldest_is_let_go():
    kept = KeptAnswers(least=60.0, share=0.0, most=2)
    for key in "abc":
        kept.get(key, lambda: 1)
    assert kept.get("c", lambda: 2) == 1
    assert kept.get("a", lambda: 2) == 2
