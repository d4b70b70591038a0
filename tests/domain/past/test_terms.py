"""Change lists in, terms and gaps out: every beginning and every ending."""

from __future__ import annotations

from leases.domain.change import ChangeType
from leases.domain.terms import Generation, Life, fold
from tests.support.values.leases import after
from tests.support.values.story import change_at, gap, term


def test_a_release_ends_a_term_and_nobody_holds_until_the_next_acquires():
    life = fold(
        [
            change_at(0, "created", "a"),
            change_at(60, "released", "a"),
            change_at(62, "acquired", "b"),
        ]
    )
    assert life.terms == (
        term("a", 0, 60, "created", "released"),
        term("b", 62, None, "acquired", None, previous="a"),
    )
    assert life.gaps == (gap(60, 62, "released", "a", "acquired", vacant=60),)


def test_a_term_that_another_takes_over_ended_when_it_ran_out():
    life = fold(
        [
            change_at(0, "created", "a"),
            change_at(40, "expired", "a"),
            change_at(43, "taken_over", "b", previous_holder="a"),
        ]
    )
    assert life.terms == (
        term("a", 0, 40, "created", "expired"),
        term("b", 43, None, "taken_over", None, previous="a"),
    )
    assert life.gaps == (gap(40, 43, "expired", "a", "taken_over"),)


def test_a_term_that_another_took_over_unseen_ended_when_it_could_run_out():
    """Nobody saw it run out: the gap is that of the take-over, at most."""
    taken = change_at(43, "taken_over", "b", previous_holder="a", gap_seconds=3.0, inferred=True)
    life = fold([change_at(0, "created", "a"), taken])
    assert [(one.holder, one.since, one.until, one.ended) for one in life.terms] == [
        ("a", after(0), after(40), "expired"), ("b", after(43), None, None),
    ]  # fmt: skip
    (found,) = life.gaps
    assert (found.since, found.until, found.after, found.inferred) == (
        after(40), after(43), "expired", True,
    )  # fmt: skip
    at_once = change_at(43, "taken_over", "b", previous_holder="a", inferred=True)
    assert fold([change_at(0, "created", "a"), at_once]).gaps == ()


def test_a_term_that_recovers_goes_on_with_a_gap_in_it():
    life = fold(
        [
            change_at(0, "created", "a"),
            change_at(40, "expired", "a"),
            change_at(47, "recovered", "a"),
        ]
    )
    inner = gap(40, 47, "expired", "a", "recovered")
    assert life.terms == (term("a", 0, None, "created", None, gaps=(inner,)),)
    assert life.gaps == ()


def test_an_expiry_that_nobody_has_answered_leaves_an_ended_term_and_an_open_gap():
    life = fold([change_at(0, "created", "a"), change_at(40, "expired", "a")])
    assert life.terms == (term("a", 0, 40, "created", "expired"),)
    assert life.gaps == (gap(40, None, "expired", "a", None),)


def test_a_replacement_leaves_no_gap():
    life = fold([change_at(0, "created", "a"), change_at(9, "replaced", "b", previous_holder="a")])
    assert life.terms == (
        term("a", 0, 9, "created", "replaced"),
        term("b", 9, None, "replaced", None, previous="a"),
    )
    assert life.gaps == ()


def test_a_restart_is_a_new_term_under_the_old_name():
    life = fold([change_at(0, "created", "a"), change_at(9, "restarted", "a", previous_holder="a")])
    assert [(t.holder, t.ended) for t in life.terms] == [("a", ChangeType.RESTARTED), ("a", None)]


def test_a_restart_after_an_expiry_ends_the_gap_but_not_by_recovering():
    life = fold(
        [
            change_at(0, "created", "a"),
            change_at(9, "expired", "a"),
            change_at(12, "restarted", "a"),
        ]
    )
    assert [term.ended for term in life.terms] == [ChangeType.EXPIRED, None]
    assert life.gaps == (gap(9, 12, "expired", "a", "restarted"),)


def test_a_lease_born_without_a_holder_begins_with_a_gap():
    life = fold([change_at(0, "created"), change_at(5, "acquired", "a")])
    assert life.gaps == (gap(0, 5, "created", None, "acquired", vacant=0),)
    assert life.terms == (term("a", 5, None, "acquired", None),)


def test_a_lease_that_is_made_anew_soon_had_no_holder_in_between():
    life = fold(
        [
            change_at(0, "created", "a"),
            change_at(20, "deleted", "a"),
            change_at(50, "created", "b", uid="u-2", gap_seconds=30),
        ]
    )
    assert life.generations == (
        Generation(uid="u-1", since=after(0), until=after(20), born=True),
        Generation(uid="u-2", since=after(50), until=None, born=True),
    )
    assert life.terms == (
        term("a", 0, 20, "created", "deleted"),
        term("b", 50, None, "created", None, uid="u-2", previous="a"),
    )
    assert life.gaps == (gap(20, 50, "deleted", "a", "created"),)


def test_a_lease_that_is_made_anew_an_hour_later_or_unseen_left_no_gap():
    def made_anew(seconds: float, **more: object) -> Life:
        return fold(
            [
                change_at(0, "created", "a"),
                change_at(20, "deleted", "a"),
                change_at(20 + seconds, "created", "b", uid="u-2", **more),
            ]
        )

    assert made_anew(3601).gaps == ()
    assert made_anew(30, inferred=True).gaps == ()
    assert len(made_anew(3600).gaps) == 1


def test_an_unseen_deletion_is_dated_before_the_next_creation():
    life = fold([change_at(0, "created", "a"), change_at(50, "created", "b", uid="u-2")])
    assert life.terms[0] == term("a", 0, 50, "created", "deleted")
    assert life.generations[0].until == after(50)


def test_a_late_deletion_does_not_end_the_next_lease_of_that_name():
    life = fold(
        [
            change_at(0, "created", "a"),
            change_at(50, "created", "b", uid="u-2"),
            change_at(51, "deleted", "a"),
        ]
    )
    assert life.terms[1] == term("b", 50, None, "created", None, uid="u-2", previous="a")


def test_a_gap_ends_with_the_lease():
    life = fold(
        [change_at(0, "created", "a"), change_at(9, "expired", "a"), change_at(30, "deleted", "a")]
    )
    assert life.gaps == (gap(9, 30, "expired", "a", "deleted"),)
    assert life.terms == (term("a", 0, 9, "created", "expired"),)


def test_a_release_of_what_has_run_out_lengthens_the_gap():
    life = fold(
        [
            change_at(0, "created", "a"),
            change_at(9, "expired", "a"),
            change_at(14, "released", "a"),
            change_at(20, "acquired", "b"),
        ]
    )
    assert life.gaps == (gap(9, 20, "expired", "a", "acquired", vacant=14),)
    assert life.terms[0].ended is ChangeType.EXPIRED


def test_missed_counters_are_the_terms_they_fell_into():
    life = fold(
        [
            change_at(0, "created", "a"),
            change_at(30, "replaced", "b", missed=2),
            change_at(40, "reconfigured", "b", missed=1, fields=("labels",)),
            change_at(50, "released", "b", missed=4),
        ]
    )
    assert [term.missed for term in life.terms] == [0, 7]
    assert [mark.fields for mark in life.reconfigurations] == [("labels",)]


def test_inferred_starts_and_ends_carry_their_windows():
    life = fold(
        [
            change_at(0, "created", "a", inferred=True),
            change_at(30, "taken_over", "b", inferred=True, inferred_since=after(20)),
            change_at(60, "released", "b"),
        ]
    )
    first, second = life.terms
    assert (first.inferred, first.ended) == (True, ChangeType.EXPIRED)
    assert (second.inferred_since, second.observed_at) == (after(20), after(30))
    assert life.generations[0].born is False


def test_a_coordinated_election_whose_counter_stays_zero_has_its_terms():
    life = fold(
        [
            change_at(0, "created", transitions=0),
            change_at(1, "acquired", "a", transitions=0),
            change_at(70, "released", "a", transitions=0),
            change_at(71, "acquired", "b", transitions=0),
        ]
    )
    assert [(t.holder, t.missed) for t in life.terms] == [("a", 0), ("b", 0)]


def test_a_clock_set_back_does_not_turn_the_order():
    life = fold(
        [
            change_at(100, "created", "a"),
            change_at(90, "released", "a"),
            change_at(95, "acquired", "b"),
            change_at(130, "released", "b"),
        ]
    )
    assert life.terms == (
        term("a", 100, 100, "created", "released"),
        term("b", 100, 130, "acquired", "released", observed_at=after(95), previous="a"),
    )
    assert life.gaps == (gap(130, None, "released", "b", None, vacant=130),)


def test_nothing_is_claimed_about_the_time_before_the_first_record():
    life = fold([change_at(30, "recovered", "a"), change_at(60, "released", "a")])
    assert life.terms == (term("a", 30, 60, None, "released"),)
    assert life.generations[0].born is False


def test_no_changes_make_an_empty_life():
    assert fold([]).generations == ()
