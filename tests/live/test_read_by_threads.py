"""Pages are made in threads: what they read of the loop's own collections is whole."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from dashboard import board as board_module
from dashboard.feed import KEPT_CHANGES
from dashboard.live.publisher import Publisher
from dashboard.parts.answer_cache import MAX_ANSWERS, AnswerCache
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.tracking.renewals import MAX_ASKED, RenewalLog
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from tests.support.values.changes import T0, a_change
from tests.support.values.tracked_leases import tracked

ROUNDS = 4000
READERS = 3


@contextmanager
def hasty() -> Iterator[None]:
    """Threads take turns as often as the interpreter lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def beside(write: Callable[[int], object], read: Callable[[], object]) -> None:
    """Read in threads while this one, as the loop, writes; raises what a reader raised."""
    over, errors = threading.Event(), []

    def reader() -> None:
        try:
            while not over.is_set():
                read()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=reader) for _ in range(READERS)]
    with hasty():
        for thread in threads:
            thread.start()
        for number in range(ROUNDS):
            write(number)
            if errors:
                break
        over.set()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


@pytest.fixture
def publisher(monkeypatch):
    one = Publisher({"a": Store("a")})
    one.fill("a", [a_change(-n) for n in range(KEPT_CHANGES)])

    class Running:
        publisher = one
        feeds = one.hubs

    monkeypatch.setattr(board_module, "_running", Running)
    return one


def publishing(publisher: Publisher) -> Callable[[int], None]:
    """Publish changes whose transitions count from 0 on."""
    first = publisher.hubs["a"].seq

    def write(number: int) -> None:
        change = a_change(transitions=number)
        publisher.publish(Update(cluster="a", now=T0, seq=number, changes=(change,)))
        assert publisher.hubs["a"].seq == first + number + 1

    return write


def test_the_newest_changes_are_read_while_others_come(publisher):
    first = publisher.hubs["a"].seq

    def read() -> None:
        seq, reported = publisher.hubs["a"].newest_first()
        if seq > first:
            assert reported[0].transitions == seq - first - 1, (
                "the number has no change, or too many"
            )
        assert len(reported) <= KEPT_CHANGES

    beside(publishing(publisher), read)


def test_threads_may_read_the_settled_number_while_changes_come(publisher):
    beside(publishing(publisher), publisher.hubs["a"].settled_seq)


def test_many_pages_ask_for_renewals_at_once():
    log, numbers = RenewalLog(), count()
    many = [tracked(key=ObjectName("n", str(number))) for number in range(2 * MAX_ASKED)]

    def read() -> None:
        log.of(many[next(numbers) % len(many)])

    beside(lambda _: read(), read)
    assert len(log.asked) <= MAX_ASKED


def test_pages_that_ask_the_same_share_one_answer():
    """By a lock of its own: it has to hold without the gate of the pages."""
    cache: AnswerCache[object] = AnswerCache(fresh=3600)
    for number in range(300):
        key = number % (2 * MAX_ANSWERS)
        start, found = threading.Barrier(READERS), []

        def choose(key=key, start=start, found=found) -> None:
            start.wait()
            found.append(cache.get(key, object))

        threads = [threading.Thread(target=choose) for _ in range(READERS)]
        with hasty():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(set(map(id, found))) == 1


def test_counts_add_up_while_a_lease_changes_its_phase(monkeypatch):
    """A reader that comes in the middle of a move has each Lease once."""
    leases = [tracked(f"lease-{number}", kind=Kind.LOCK) for number in range(20)]
    store = Store("a")
    store.restore(leases, T0)
    rows, row, seen = store._rows, store._rows.get(leases[0].key), []
    assert row is not None

    def read() -> None:
        counts = sum(sum(phases.values()) for phases in store.counts().values())
        listed = [one.key for one in store.select((Kind.LOCK, Kind.ELECTION), tuple(Phase))]
        seen.append((counts, len(listed), len(set(listed))))

    readers = []
    count_one = rows._count

    def count_and_let_read(*given: object) -> None:
        count_one(*given)  # type: ignore[arg-type]
        readers.append(threading.Thread(target=read))
        readers[-1].start()
        readers[-1].join(0.02)

    monkeypatch.setattr(rows, "_count", count_and_let_read)
    rows.put(row, row.tracked.replace(phase=Phase.VACANT, kind=Kind.ELECTION))
    for reader in readers:
        reader.join()
    assert seen == [(20, 20, 20)] * 2
