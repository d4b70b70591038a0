"""Questions to history: filters, order, pages, text for other programs."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from leases import models
from leases.domain.change import ChangeType
from leases.domain.kind import Kind
from leases.history import export, queries
from leases.history.queries import BadCursor, HistoryFilter
from leases.history.rows import to_row
from tests.history.factory import T0, a_change

pytestmark = pytest.mark.django_db


def keep(*changes):
    models.Change.objects.bulk_create([to_row(change) for change in changes])


def test_recent_changes_come_newest_first_and_per_cluster():
    keep(*(a_change(n) for n in range(5)), a_change(9, cluster="b"))
    assert queries.recent("a", 2) == [a_change(4), a_change(3)]


def test_pages_tile_the_history_without_gap_or_overlap():
    same_time = [a_change(3, uid=f"u-{n}", at=T0) for n in range(7)]
    keep(*same_time)
    seen, before = [], None
    while True:
        page, before, total = queries.find("a", HistoryFilter(), before=before, limit=3)
        seen += page
        assert total == 7
        if before is None:
            break
    assert sorted(c.uid for c in seen) == sorted(c.uid for c in same_time)


@pytest.mark.parametrize("cursor", ["x", "!!!", "MjAyNg", "\N{BULLET}"])
def test_a_cursor_of_somebody_elses_making_is_refused(cursor):
    with pytest.raises(BadCursor, match="start again"):
        queries.find("a", HistoryFilter(), before=cursor, limit=3)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (HistoryFilter(change=("created", "expired")), [1, 2]),
        (HistoryFilter(kind=("heartbeat",)), [3]),
        (HistoryFilter(namespace="other"), [4]),
        (HistoryFilter(lease="worker"), [5]),
        (HistoryFilter(holder="cp-9"), [6, 7]),
        (HistoryFilter(inferred=True), [8]),
        (HistoryFilter(since=T0 + timedelta(seconds=8)), [8]),
        (HistoryFilter(until=T0 + timedelta(seconds=2)), [1]),
    ],
)
def test_each_filter_finds_its_own(wanted, found):
    keep(
        a_change(1, change=ChangeType.CREATED),
        a_change(2, change=ChangeType.EXPIRED),
        a_change(3, kind=Kind.HEARTBEAT),
        a_change(4, namespace="other"),
        a_change(5, name="worker"),
        a_change(6, holder="cp-9"),
        a_change(7, previous_holder="cp-9"),
        a_change(8, inferred=True),
    )
    page, _, total = queries.find("a", wanted, limit=50)
    assert sorted(change.transitions for change in page) == found
    assert total == len(found)


def test_export_prints_the_contracts_names_oldest_first(capsys):
    keep(a_change(2), a_change(1, holder=None, change=ChangeType.RELEASED))
    call_command("export_history")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["change"] for line in lines] == ["released", "taken_over"]
    assert list(lines[0]) == list(export.FIELDS)
    assert lines[0]["holder"] is None
    assert lines[0]["at"] == "2026-11-20T12:00:01.123456Z"


def test_csv_has_a_header_and_one_line_a_change(capsys):
    keep(a_change(1, fields=("labels", "strategy"), holder=None))
    call_command("export_history", "--format", "csv", "--cluster", "a")
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["fields"], row["holder"], row["inferred"]) == ("labels strategy", "", "false")


def test_export_names_what_is_wrong():
    keep(a_change())
    with pytest.raises(CommandError, match="No history of a cluster called 'z'. Known: none yet"):
        call_command("export_history", "--cluster", "z")
    with pytest.raises(CommandError, match="--since 'noon' is not a time"):
        call_command("export_history", "--since", "noon")
    with pytest.raises(CommandError, match="is not a time"):
        call_command("export_history", "--since", "2026-13-45T00:00:00Z")
