"""An expensive answer is made once for all who ask, and again after its time."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from weakref import ref

import pytest

from dashboard.parts.answer_cache import AnswerCache

SOON = 10.0  # seconds


class Past:
    """A large answer."""


def test_an_answer_is_kept_and_made_again_after_its_time():
    numbers = itertools.count()
    cache: AnswerCache[int] = AnswerCache(fresh=60.0, cost=0.0)
    assert [cache.get("a", lambda: next(numbers)) for _ in range(3)] == [0, 0, 0]
    assert cache.get("b", lambda: next(numbers)) == 1
    aged: AnswerCache[int] = AnswerCache(fresh=-1.0, cost=0.0)
    assert [aged.get("a", lambda: next(numbers)) for _ in range(2)] == [2, 3]


def test_an_answer_that_took_long_is_kept_longer(monkeypatch):
    clock = iter([100.0, 100.0, 102.0, 121.0, 123.0, 123.0, 124.0])
    monkeypatch.setattr("dashboard.parts.answer_cache.time.monotonic", lambda: next(clock))
    numbers = itertools.count()
    cache: AnswerCache[int] = AnswerCache(fresh=1.0, cost=10.0)
    # Made from 100 to 102 s, so kept until 122 s: asked at 121 s, and at 123 s.
    assert [cache.get("a", lambda: next(numbers)) for _ in range(3)] == [0, 0, 1]


def test_an_answer_that_is_too_old_is_let_go_when_another_is_asked_for():
    cache: AnswerCache[Past] = AnswerCache(fresh=0.0, cost=0.0)
    kept: AnswerCache[Past] = AnswerCache(fresh=60.0)
    past = [ref(cache.get(name, Past)) for name in ("a", "b")]
    assert [one() is None for one in past] == [True, False]
    assert all(ref(kept.get(name, Past))() for name in ("a", "b"))


def test_an_answer_of_none_is_kept_too():
    cache: AnswerCache[object] = AnswerCache(fresh=60.0)
    assert cache.get("a", lambda: None) is None
    assert cache.get("a", lambda: "made again") is None


def test_beyond_the_limit_the_answer_asked_for_longest_ago_is_dropped():
    cache: AnswerCache[int] = AnswerCache(fresh=60.0, most=2)
    for key in ("a", "b", "a", "c"):
        cache.get(key, lambda: 1)
    assert cache.get("a", lambda: 2) == 1
    assert cache.get("b", lambda: 2) == 2


def test_threads_that_ask_at_once_get_one_answer():
    cache: AnswerCache[int] = AnswerCache(fresh=60.0)
    making, go = Event(), Event()

    def make():
        making.set()
        assert go.wait(SOON)
        return 7

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(cache.get, "a", make)
        assert making.wait(SOON)
        second = threads.submit(cache.get, "a", lambda: pytest.fail("made twice"))
        assert cache.get("b", lambda: 8) == 8  # another answer does not wait
        go.set()
        assert (first.result(SOON), second.result(SOON)) == (7, 7)


def test_an_answer_that_is_made_again_is_shared_whatever_else_is_asked_for():
    cache: AnswerCache[int] = AnswerCache(fresh=60.0)
    making, go = Event(), Event()
    cache.get("a", lambda: 1)
    cache._answers["a"].until = 0.0  # its time is over

    def make():
        making.set()
        assert go.wait(SOON)
        return 7

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(cache.get, "a", make)
        assert making.wait(SOON)
        cache.get("b", lambda: 8)
        second = threads.submit(cache.get, "a", lambda: pytest.fail("made twice"))
        go.set()
        assert (first.result(SOON), second.result(SOON)) == (7, 7)


def test_an_answer_that_fails_is_made_by_the_next_who_asks():
    cache: AnswerCache[int] = AnswerCache(fresh=60.0)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    assert cache.get("a", lambda: 1) == 1
