"""How long to wait before the next try."""

from __future__ import annotations

from leases.kube.backoff import Backoff


def test_delays_double_up_to_the_limit() -> None:
    backoff = Backoff(jitter=lambda: 0.0)
    assert [backoff.delay() for _ in range(7)] == [0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 10.0]


def test_a_delay_is_lengthened_by_up_to_itself_but_not_beyond_the_limit() -> None:
    backoff = Backoff(jitter=lambda: 1.0)
    assert [backoff.delay() for _ in range(6)] == [1.6, 3.2, 6.4, 10.0, 10.0, 10.0]


def test_two_clients_do_not_come_back_at_the_same_moment() -> None:
    assert len({Backoff().delay() for _ in range(10)}) > 1


def test_success_begins_with_the_short_delay_again() -> None:
    backoff = Backoff(jitter=lambda: 0.0)
    backoff.delay()
    backoff.delay()
    backoff.reset()
    assert backoff.delay() == 0.8


def test_a_delay_is_at_least_what_the_server_asks_for() -> None:
    backoff = Backoff(jitter=lambda: 0.0)
    assert backoff.delay(at_least=5.0) == 5.0
    assert backoff.delay(at_least=0.1) == 1.6


def test_a_refusal_waits_longer_for_a_person_to_act() -> None:
    assert Backoff(refused=15.0, jitter=lambda: 0.0).delay(refused=True) == 15.0


def test_gone_shortens_the_delay_once_until_the_next_success() -> None:
    backoff = Backoff(jitter=lambda: 0.0)
    failing = [backoff.delay() for _ in range(3)]
    assert [*failing, backoff.delay(gone=True)] == [0.8, 1.6, 3.2, 0.8]
    assert [backoff.delay(gone=True), backoff.delay(), backoff.delay(gone=True)] == [1.6, 3.2, 6.4]
    backoff.reset()
    assert [backoff.delay(), backoff.delay(), backoff.delay(gone=True)] == [0.8, 1.6, 0.8]
