"""What happens to a Lease settles what its fields only let us guess."""

from __future__ import annotations

import pytest

from leases.domain.kind import (
    MADE_ANEW,
    OTHER_HOLDER,
    RENEWED_ALONE,
    RENEWED_SINCE,
    Kind,
    Verdict,
    after_deletion,
    after_next_holder,
    classify,
    keep_settled,
)
from tests.support.values.leases import lease

SETTLED = [MADE_ANEW, OTHER_HOLDER, RENEWED_ALONE]
SURE: Verdict = (Kind.ELECTION, "leaseTransitions counts its holders")
NOT_RENEWED: Verdict = (Kind.LOCK, "a guess: acquired, and not renewed since")


def test_the_guess_is_that_of_the_rules():
    assert classify(lease(transitions=None, renewed=1), None) == RENEWED_SINCE
    assert classify(lease(transitions=None), None) == NOT_RENEWED


def test_another_holder_makes_a_guess_an_election():
    assert after_next_holder(RENEWED_SINCE, "a", "b") == OTHER_HOLDER
    assert OTHER_HOLDER[0] is Kind.ELECTION
    assert after_next_holder(RENEWED_ALONE, "a", "b") == OTHER_HOLDER


@pytest.mark.parametrize(
    ("before", "holder"),
    [(None, "b"), ("a", None), ("a", "a"), ("cp-1_0123abcd", "cp-1_4567cdef")],
)
def test_the_same_host_settles_nothing(before, holder):
    assert after_next_holder(RENEWED_SINCE, before, holder) == RENEWED_SINCE


@pytest.mark.parametrize("known", [SURE, NOT_RENEWED, MADE_ANEW])
def test_another_holder_settles_only_the_guess_of_an_election(known):
    assert after_next_holder(known, "a", "b") == known


def test_a_guess_that_is_deleted_while_held_makes_the_next_a_lock():
    assert after_deletion(RENEWED_SINCE, held=True) == MADE_ANEW
    assert MADE_ANEW[0] is Kind.LOCK
    assert after_deletion(RENEWED_SINCE, held=False) is None
    assert after_deletion(NOT_RENEWED, held=True) is None
    assert after_deletion(SURE, held=True) is None


@pytest.mark.parametrize("known", SETTLED)
def test_what_is_settled_stays_until_the_rules_know_better(known):
    assert after_deletion(known, held=False) == known
    for guess in (RENEWED_SINCE, NOT_RENEWED):
        assert keep_settled(guess, known) == known
    assert keep_settled(SURE, known) == SURE
    assert keep_settled(RENEWED_SINCE, SURE) == RENEWED_SINCE
