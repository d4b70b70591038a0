"""A row that the database refuses is set aside, and all others are written. While the database is
out of order, nothing is set aside."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import timedelta

import pytest
from django.db import Error, connection, connections, transaction

from leases import models
from leases.domain.lease import ObjectName
from leases.domain.watched_times import WatchedTime, WatchEnd
from leases.history import refused_rows, write_batch
from leases.history.database import from_stored
from leases.history.recorder import Recorder, StateSource
from leases.history.refused_rows import What, forget_refused, is_of_the_value, recently_refused
from leases.history.write_batch import write_what_fits
from tests.support.recording import KEY, in_thread, until
from tests.support.values.batches import BEYOND, a_batch
from tests.support.values.changes import T0, a_change, remembered

pytestmark = pytest.mark.django_db(transaction=True)


NUL = "a\0b"


def kept() -> list[int | None]:
    return list(models.ChangeRecord.objects.order_by("id").values_list("transitions", flat=True))


@pytest.mark.parametrize("odd", [[0], [5], [10], [3, 4], [0, 1, 2, 6, 10], list(range(11))])
def test_rows_that_are_not_refused_are_written_in_order(odd):
    changes = [a_change(n, transitions=BEYOND + n if n in odd else n) for n in range(11)]
    found = write_what_fits(a_batch(*changes, states=[(KEY, b"{}")]))
    assert kept() == [n for n in range(11) if n not in odd]
    assert len(found) == len(odd) == models.RefusedRow.objects.count()
    assert remembered() == ((b"{}",), "7", T0)


def test_a_row_set_aside_keeps_all_its_values_and_the_reason():
    write_what_fits(a_batch(a_change(transitions=BEYOND, holder=NUL)))
    row = models.RefusedRow.objects.get()
    assert (row.cluster, row.what) == ("a", "change")
    assert (row.namespace, row.name) == ("kube-system", "scheduler")
    said = json.loads(row.content)
    assert (said["transitions"], said["holder"], said["change"]) == (BEYOND, NUL, "taken_over")
    assert any(word in row.error for word in ("too large", "out of range"))


def test_a_repeated_change_is_set_aside_once(caplog):
    reported = a_batch(a_change(transitions=BEYOND), a_change(1))
    with caplog.at_level(logging.ERROR):
        assert len(write_what_fits(reported)) == 1
        assert write_what_fits(reported) == []
    assert models.RefusedRow.objects.count() == 1
    assert caplog.text.count("is set aside") == 1


def test_a_state_that_is_refused_holds_up_no_other():
    def encode(state):
        if state == "odd":
            raise OverflowError("Integer does not fit")
        return state.encode()

    others = [(ObjectName("n", name), name) for name in ("x", "y")]
    found = write_what_fits(
        a_batch(a_change(), states=[others[0], (KEY, "odd"), others[1]], encode=encode)
    )
    assert [(one.what, one.name) for one in found] == [(What.STATE, "scheduler")]
    assert remembered() == ((b"x", b"y"), "7", T0)
    assert kept() == [0]


def test_a_watched_time_whose_end_has_a_nul_is_kept():
    span = WatchedTime(since=T0, until=T0, ended=WatchEnd.LOST, detail=NUL)
    assert write_what_fits(a_batch(spans=[span])) == []
    assert from_stored(models.WatchSpan.objects.get().detail) == NUL


def test_a_version_without_end_holds_up_no_change():
    version = "9" * 4000
    assert len(write_what_fits(a_batch(a_change(), version=version))) == (
        1 if connection.vendor == "postgresql" else 0
    )
    assert kept() == [0]


async def test_the_recorder_goes_on_and_reports_what_was_refused():
    one = Recorder()
    one.add(StateSource("a", lambda _: b"{}", lambda: "7", lambda: T0))
    task = asyncio.create_task(one.run())
    odd = a_change(1, transitions=BEYOND)
    one.record(cluster="a", changes=(a_change(0), odd, a_change(2)), changed=(KEY,))
    await until(lambda: kept() == [0, 2])
    one.record(cluster="a", changes=(a_change(3),))
    await until(lambda: kept() == [0, 2, 3])
    assert one.problem is None
    assert one.refused.total == 1
    (shown,) = one.refused.lately("a", (await in_thread(models.RefusedRow.objects.get)).at)
    assert (shown.namespace, shown.name, shown.content) == ("kube-system", "scheduler", "")
    await one.close(task)


async def test_an_error_that_nobody_expected_stops_no_recorder(monkeypatch):
    one = Recorder()
    one.add(StateSource("a", lambda _: b"{}", lambda: "7", lambda: T0))
    task = asyncio.create_task(one.run())
    write = write_batch.write_changes

    def broken(changes):
        if any(change.transitions == 1 for change in changes):
            raise AttributeError("a defect of ours")
        write(changes)

    monkeypatch.setattr(write_batch, "write_changes", broken)
    one.record(cluster="a", changes=tuple(a_change(n) for n in range(3)))
    await until(lambda: kept() == [0, 2])
    await one.close(task)
    row = await in_thread(models.RefusedRow.objects.get)
    assert row.error == "AttributeError: a defect of ours"


def locked() -> Error:
    """What a writer gets while another one is at it."""
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute("PRAGMA busy_timeout = 0")
            else:
                cursor.execute("SET lock_timeout = 1")
        with transaction.atomic():
            models.RefusedRow.objects.select_for_update().count()
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute("LOCK TABLE leases_change")
            with pytest.raises(Error) as caught, other.cursor() as cursor:
                cursor.execute("DELETE FROM leases_change")
            return caught.value
    finally:
        other.close()


def read_only() -> Error:
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute(
                "PRAGMA query_only = on"
                if connection.vendor == "sqlite"
                else "SET default_transaction_read_only = on"
            )
            with pytest.raises(Error) as caught:
                cursor.execute("DELETE FROM leases_change")
            return caught.value
    finally:
        other.close()


def without_its_table() -> Error:
    with pytest.raises(Error) as caught, connection.cursor() as cursor:
        cursor.execute("DELETE FROM leases_nothing")
    return caught.value


def cut_off() -> Error:
    """The server ends the connection; SQLite's can only be closed."""
    other = connections.create_connection("default")
    try:
        sql = "SELECT 1"
        with other.cursor() as cursor:
            if connection.vendor == "postgresql":
                sql = "SELECT pg_terminate_backend(pg_backend_pid())"
            else:
                other.connection.close()
            with pytest.raises(Error) as caught:
                cursor.execute(sql)
        return caught.value
    finally:
        other.close()


@pytest.mark.parametrize("broken", [locked, read_only, without_its_table, cut_off])
def test_a_database_out_of_order_is_no_reason_to_set_anything_aside(broken):
    assert not is_of_the_value(broken())


def test_nothing_is_set_aside_while_nothing_can_be_written():
    switch = {"sqlite": "PRAGMA query_only = {}", "postgresql":
              "SET default_transaction_read_only = {}"}[connection.vendor]  # fmt: skip
    reported = a_batch(a_change(transitions=BEYOND), a_change(1))
    with connection.cursor() as cursor:
        cursor.execute(switch.format("on"))
        with pytest.raises(Error):
            write_what_fits(a_batch(a_change(1)))
        with pytest.raises(Error):
            write_what_fits(reported)
        cursor.execute(switch.format("off"))
    assert (kept(), models.RefusedRow.objects.count()) == ([], 0)
    write_what_fits(reported)
    assert (kept(), models.RefusedRow.objects.count()) == ([1], 1)


def test_rows_set_aside_are_shown_for_a_day_and_deleted_with_history(monkeypatch):
    write_what_fits(a_batch(*(a_change(n, transitions=BEYOND) for n in range(5))))
    at = models.RefusedRow.objects.earliest("id").at
    assert len(recently_refused("a", at)) == 5
    assert recently_refused("a", at + timedelta(days=2)) == []
    monkeypatch.setattr(refused_rows, "MAX_KEPT", 3)
    assert forget_refused(at - timedelta(days=1)) == 2
    assert forget_refused(at + timedelta(days=1)) == 3
