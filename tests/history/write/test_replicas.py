"""Several replicas write one history, whatever each observed and in whatever order they write."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from leases import models
from leases.domain.change import Change, ChangeType
from leases.history.recorder import Recorder, StateSource
from leases.history.rows import FIELDS, to_change
from leases.history.write_batch import write_changes
from tests.support.recording import KEY, in_thread, until
from tests.support.values.changes import T0, a_change, remembered

pytestmark = pytest.mark.django_db(transaction=True)


def at(seconds: float):
    return T0 + timedelta(seconds=seconds)


def concluded(since: float, until: float, **given: object) -> Change:
    """A change that a list showed at `until`, of a time unseen since `since`."""
    given = {"inferred": True, "inferred_since": at(since), "observed_at": at(until)} | given
    return a_change(**({"at": at(until)} | given))


def kept() -> list[Change]:
    return list(
        map(to_change, models.ChangeRecord.objects.order_by("at", "id").values_list(*FIELDS))
    )


@pytest.fixture(params=[1, -1], ids=["one first", "the other first"])
def order(request) -> int:
    """Which of two replicas writes first."""
    return request.param


def write_in_order(order: int, *accounts: Change) -> list[Change]:
    for change in accounts[::order]:
        write_changes([change])
    return kept()


@pytest.mark.parametrize("word", [ChangeType.CREATED, ChangeType.DELETED, ChangeType.EXPIRED])
def test_an_observed_change_replaces_an_inferred_one(word, order):
    one = a_change(3, change=word, resource_version="")
    other = concluded(1, 9, change=word, resource_version="")
    assert write_in_order(order, one, other) == [one]


def test_a_take_over_stands_above_a_replacement_that_another_clock_saw(order):
    out = a_change(3)
    in_time = a_change(3, change=ChangeType.REPLACED, at=at(2.999), gap_seconds=None)
    assert write_in_order(order, out, in_time) == [out]


@pytest.mark.parametrize("holder", ["cp-1", None])
def test_a_list_that_shows_a_later_renewal_makes_no_second_change(holder, order):
    seen = a_change(3, holder=holder)
    guess = concluded(1, 9, holder=holder, resource_version="888", missed=2)
    assert write_in_order(order, seen, guess) == [seen]


def test_what_came_at_any_time_before_accounts_for_what_has_no_beginning(order):
    seen = a_change(3)
    guess = concluded(1, 9, inferred_since=None, resource_version="888")
    assert write_in_order(order, seen, guess) == [seen]


def test_two_lists_that_show_different_renewals_make_one_change(order):
    reported = write_in_order(
        order,
        concluded(1, 9, resource_version="888"),
        concluded(2, 9.5, at=at(8), resource_version="890"),
    )
    assert len(reported) == 1


def test_an_account_of_what_came_after_the_unseen_time_is_none():
    guess = concluded(1, 9, resource_version="opaque")
    later = a_change(12, resource_version="opaque too")
    write_changes([guess])
    write_changes([a_change(2, name="other"), later])
    assert kept()[1:] == [guess, later]


def test_each_of_several_observed_changes_replaces_its_own_inferred_one():
    write_changes([concluded(1, 9, name="one", resource_version="888")])
    write_changes([concluded(1, 25, name="other", resource_version="888")])
    seen = [a_change(3, name="one"), a_change(20, name="other")]
    write_changes(seen)
    assert kept() == seen


def test_a_term_may_run_out_twice_in_an_unseen_time(order):
    of = {"change": ChangeType.EXPIRED, "resource_version": ""}
    guess = concluded(1, 9, at=at(3), own_identity="u-1 expired  3", **of)
    seen = a_change(6, own_identity="u-1 expired  6", **of)
    assert len(write_in_order(order, guess, seen)) == 2


def test_a_conclusion_that_nobody_accounts_for_is_kept(order):
    before, after = a_change(1), a_change(10, resource_version="900")
    guess = concluded(1, 9, resource_version="888")
    assert write_in_order(order, before, guess, after) == [before, guess, after]


@pytest.mark.parametrize("other", [{"uid": "u-2"}, {"name": "other"}, {"holder": "cp-3"}])
def test_an_account_of_something_else_is_none(other, order):
    guess = concluded(1, 9, resource_version="888")
    assert len(write_in_order(order, a_change(3, **other), guess)) == 2


def test_different_changes_of_one_write_are_kept(order):
    reported = write_in_order(order, a_change(3), a_change(3, change=ChangeType.RECONFIGURED))
    assert len(reported) == 2


def test_an_index_finds_the_inferred_changes_of_a_lease():
    write_changes([a_change(number) for number in range(2000)])
    with CaptureQueriesContext(connection) as asked:
        write_changes([a_change(3)])
    (found,) = [one["sql"] for one in asked if "AND inferred" in one["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"{connection.ops.explain_query_prefix()} {found}")
        plan = str(cursor.fetchall())
    assert "change_conclusions" in plan


def test_a_holder_that_came_back_later_accounts_for_no_earlier_time():
    """After a start events are replayed: each is one write, and the last ones are observed."""
    first = concluded(1, 9, at=at(3), resource_version="103")
    between = concluded(3, 9, at=at(4), holder="cp-2", resource_version="104")
    again = a_change(6, resource_version="106", observed_at=at(10))
    assert _written(first, between, again) == ["103", "104", "106"]


def test_nor_does_it_in_another_write(order):
    first = concluded(1, 9, at=at(3), resource_version="103")
    again = a_change(6, resource_version="106")
    assert write_in_order(order, first, again) == [first, again]


def _written(*changes: Change) -> list[str]:
    write_changes(changes)
    return [change.resource_version for change in kept()]


@pytest.mark.parametrize("account", [a_change, lambda at, **given: concluded(1, at, **given)])
def test_changes_of_many_leases_take_few_statements(account):
    leases = [f"lease-{number}" for number in range(400)]
    with CaptureQueriesContext(connection) as asked:
        write_changes([account(9, name=name) for name in leases])
        write_changes([concluded(1, 10, name=name, resource_version="888") for name in leases])
    assert len(kept()) == len(leases)
    assert len(asked) < 50


async def test_the_replica_that_is_further_on_remembers_for_both():
    versions = {"ahead": "9", "behind": "7"}
    replicas = {name: Recorder() for name in versions}
    for name, replica in replicas.items():
        state = name.encode()
        replica.add(StateSource("a", lambda _, s=state: s, lambda n=name: versions[n], lambda: T0))
    tasks = {name: asyncio.create_task(replica.run()) for name, replica in replicas.items()}
    replicas["ahead"].record(cluster="a", changed=(KEY,))
    await until(lambda: models.LeaseRecord.objects.count() == 1)
    replicas["behind"].record(cluster="a", changes=(a_change(),), changed=(KEY,))
    await until(lambda: models.ChangeRecord.objects.count() == 1)
    assert await in_thread(remembered) == ((b"ahead",), "9", T0)
    versions["behind"] = "10"
    replicas["behind"].record(cluster="a", changed=(KEY,))
    await until(lambda: remembered() == ((b"behind",), "10", T0))
    versions["ahead"] = "3"  # the cluster was restored from a backup, and this one noticed
    replicas["ahead"].record(cluster="a", changed=(KEY,))
    await until(lambda: remembered() == ((b"ahead",), "3", T0))
    for name, replica in replicas.items():
        await replica.close(tasks[name])
