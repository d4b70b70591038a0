"""Forgetting keeps what later changes begin with."""

from __future__ import annotations

from datetime import timedelta

import pytest

from leases import models
from leases.domain.change import ChangeType
from leases.domain.terms import as_of, fold
from leases.history import retention
from leases.history.find_changes import oldest_first
from leases.history.indexed_search import HistoryFilter
from tests.support.values.change_rows import to_row
from tests.support.values.changes import T0, a_change

pytestmark = pytest.mark.django_db


def keep(*changes):
    models.ChangeRecord.objects.bulk_create([to_row(change) for change in changes])


def kept() -> list[tuple[str, int]]:
    rows = models.ChangeRecord.objects.order_by("name", "at")
    return [(row.name, row.transitions) for row in rows]


def at(seconds):
    return T0 + timedelta(seconds=seconds)


def forget(cluster: str, seconds: float, since: float | None = None) -> list[int]:
    """One round, and how many changes each of its batches forgot."""
    started = None if since is None else at(since)
    batches = list(retention.forgettable(cluster, at(seconds), since=started))
    return [retention.forget(cluster, batch) for batch in batches]


def of(name, seconds, word, holder="h"):
    change = ChangeType(word)
    gone = change in (ChangeType.RELEASED, ChangeType.DELETED)
    return a_change(seconds, name=name, change=change, holder=None if gone else holder)


def test_old_changes_go_but_the_last_of_a_living_lease_stays(monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 2)
    monkeypatch.setattr(retention, "WALKED", 3)
    changes = [a_change(n) for n in range(6)]
    changes += [a_change(n, name="dead", uid=f"u-{n}", change=ChangeType.DELETED) for n in (1, 2)]
    changes += [a_change(n, name="quiet") for n in (0, 1)]
    keep(*changes)
    batches = forget("a", 4)
    assert sum(batches) == 6
    assert max(batches) == 2
    assert kept() == [("quiet", 1), ("scheduler", 3), ("scheduler", 4), ("scheduler", 5)]


def test_a_later_round_goes_on_where_the_earlier_one_ended():
    keep(*(a_change(n) for n in range(8)), a_change(0, name="quiet"))
    assert sum(forget("a", 3)) == 2
    assert sum(forget("a", 6, since=3)) == 3
    assert kept() == [("quiet", 0), ("scheduler", 5), ("scheduler", 6), ("scheduler", 7)]


def test_other_clusters_are_left_alone():
    keep(*(a_change(n) for n in range(3)), *(a_change(n, cluster="b") for n in range(3)))
    assert sum(forget("a", 9)) == 2
    assert models.ChangeRecord.objects.filter(cluster="b").count() == 3


STORY = (
    of("one", 0, "created", "a"),
    of("one", 5, "released", "a"),
    of("one", 6, "acquired", "b"),
    of("one", 10, "expired", "b"),
    of("one", 12, "recovered", "b"),
    of("one", 14, "reconfigured", "b"),
    of("one", 15, "reconfigured", "b"),
    of("one", 20, "expired", "b"),
    of("one", 21, "reconfigured", "b"),
    of("one", 30, "taken_over", "c"),
    of("one", 40, "deleted", "c"),
    a_change(45, name="one", uid="u-2", change=ChangeType.CREATED, holder="d"),
    a_change(50, name="one", uid="u-2", change=ChangeType.EXPIRED, holder="d"),
)


CHANGED = [round((one.at - T0).total_seconds()) for one in STORY]


@pytest.mark.parametrize("cut", sorted({*CHANGED, *(second + 1 for second in CHANGED)}))
def test_terms_stay_right_wherever_the_cut_falls(cut):
    keep(*STORY)
    forget("a", cut)
    whole = fold(STORY)
    rest = fold(oldest_first("a", HistoryFilter(), chunk=100))
    for half in range(2 * cut, 120):
        then, now = as_of(whole, at(half / 2)), as_of(rest, at(half / 2))
        if then.exists or now.exists:
            assert (now.phase, now.holder, now.since) == (then.phase, then.holder, then.since)


def test_so_many_changes_stay_over_all_clusters():
    keep(
        *(a_change(n) for n in range(10)),
        *(a_change(n + 0.5, cluster="b") for n in range(5, 15)),
    )
    cut = retention.cut_of_rows(8)
    assert models.ChangeRecord.objects.filter(at__gte=cut).count() == 8
    assert retention.cut_of_rows(20) is None
    assert retention.cut_of_rows(19) is not None


def test_an_empty_list_is_not_shortened():
    assert retention.cut_of_rows(1) is None
    assert forget("a", 0) == [0]


def test_when_a_cluster_was_watched_is_forgotten_too():
    for seconds in (0, 100):
        models.WatchSpan.objects.create(
            cluster="a", process="p", since=at(seconds), until=at(seconds + 10)
        )
    assert retention.forget_watches("a", at(50)) == 1
