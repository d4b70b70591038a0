"""Questions to history: filters, order, pages, text for other programs."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from leases import models
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.history import export, find_changes, indexed_search
from leases.history.find_changes import BadCursor, ChangePage
from leases.history.indexed_search import HistoryFilter
from tests.support.values.change_rows import to_row
from tests.support.values.changes import T0, a_change

pytestmark = pytest.mark.django_db


def keep(*changes):
    models.ChangeRecord.objects.bulk_create([to_row(change) for change in changes])


def test_recent_changes_come_newest_first_and_per_cluster():
    keep(*(a_change(n) for n in range(5)), a_change(9, cluster="b"))
    assert find_changes.recent("a", 2) == [a_change(4), a_change(3)]


def test_pages_tile_the_history_without_gap_or_overlap():
    same_time = [a_change(3, uid=f"u-{n}", at=T0) for n in range(7)]
    keep(*same_time)
    seen, before = [], None
    while True:
        page = find_changes.find("a", HistoryFilter(), before=before, limit=3)
        seen += page.changes
        before = page.older
        assert (page.total, page.exact) == (7, True)
        if before is None:
            break
    assert sorted(c.uid for c in seen) == sorted(c.uid for c in same_time)


@pytest.mark.parametrize("cursor", ["x", "!!!", "MjAyNg", "\N{BULLET}", "x" * 9999])
def test_a_cursor_of_somebody_elses_making_is_refused(cursor):
    with pytest.raises(
        BadCursor, match=r"^before cannot be .{1,70}: it is not a page of this history"
    ):
        find_changes.find("a", HistoryFilter(), before=cursor, limit=3)


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
    page = find_changes.find("a", wanted, limit=50)
    assert sorted(change.transitions for change in page.changes) == found
    assert (page.total, page.exact, page.older) == (len(found), True, None)


def pages(wanted: HistoryFilter, limit: int) -> list[ChangePage]:
    found = [find_changes.find("a", wanted, limit=limit)]
    while found[-1].older:
        found.append(find_changes.find("a", wanted, before=found[-1].older, limit=limit))
    return found


def test_a_rare_match_is_searched_for_in_bounded_steps(monkeypatch):
    monkeypatch.setattr(indexed_search, "BUDGET", 4)
    keep(*(a_change(n, missed=n) for n in range(20)), a_change(30, inferred=True))
    keep(a_change(-1, inferred=True))
    wanted = HistoryFilter(change=("taken_over", "expired"), inferred=True)
    found = pages(wanted, 2)
    assert [change.at for page in found for change in page.changes] == [
        T0 + timedelta(seconds=30),
        T0 + timedelta(seconds=-1),
    ]
    assert any(not page.changes for page in found)


def test_filters_that_no_index_has_together_leave_nothing_out(monkeypatch):
    monkeypatch.setattr(indexed_search, "BUDGET", 6)
    words, kinds = ("created", "expired", "deleted"), ("heartbeat", "election")
    keep(
        *(
            a_change(
                n,
                change=ChangeType(words[n % 3]),
                kind=Kind(kinds[n % 2]),
                uid=f"u-{n}",
                holder=f"h-{n % 5}",
                previous_holder=f"h-{n % 4}",
                namespace=f"ns-{n % 2}",
                name=f"l-{n % 7}",
                inferred=n % 3 == 0,
            )
            for n in range(120)
        )
    )
    every = [change for page in pages(HistoryFilter(), 50) for change in page.changes]
    assert len(every) == 120
    for wanted in (
        HistoryFilter(change=("created", "deleted"), kind=("heartbeat",)),
        HistoryFilter(change=("created", "expired"), inferred=False),
        HistoryFilter(holder="h-3", kind=("election",), inferred=True),
        HistoryFilter(lease="l-3", change=("deleted",)),
        HistoryFilter(namespace="ns-1", holder="h-1"),
        HistoryFilter(namespace="ns-1", lease="l-5"),
        HistoryFilter(kind=("election",), since=T0 + timedelta(seconds=40)),
    ):
        found = [change for page in pages(wanted, 3) for change in page.changes]
        assert found == [change for change in every if matches(change, wanted)], wanted


LONG = "long-" * 900


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (LONG + "1", LONG + "1"),
        ("a\0b", "a\0b"),
        ("a␀b", "a\0b"),
        (" blank ", " blank "),
        ("name ", "name"),
        ("␀\0", "␀\0"),
    ],
)
def test_any_holder_that_an_api_server_accepts_is_found(asked, found):
    holders = [LONG + "1", LONG + "2", "a\0b", "ab", "a b", " blank ", "blank.", "name", "␀\0"]
    keep(
        *(
            a_change(n, uid=f"u-{n}", holder=holder, previous_holder=holders[n - 1])
            for n, holder in enumerate(holders)
        )
    )
    page = find_changes.find("a", HistoryFilter(holder=asked), limit=50)
    assert {(one.holder == found, one.previous_holder == found) for one in page.changes} == {
        (True, False),
        (False, True),
    }
    assert page.total == len(page.changes) == 2


def matches(change: Change, wanted: HistoryFilter) -> bool:
    return (
        (not wanted.change or change.change in wanted.change)
        and (not wanted.kind or change.kind in wanted.kind)
        and wanted.namespace in (None, change.namespace)
        and wanted.lease in (None, change.name)
        and wanted.holder in (None, change.holder, change.previous_holder)
        and wanted.inferred in (None, change.inferred)
        and (wanted.since is None or wanted.since <= change.at)
    )


def test_a_total_beyond_what_is_counted_says_so(monkeypatch):
    monkeypatch.setattr(indexed_search, "FEW", 5)
    keep(*(a_change(n) for n in range(8)))
    page = find_changes.find("a", HistoryFilter(), limit=2)
    assert (page.total, page.exact) == (5, False)


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
    [line] = models.SecurityRecord.objects.values_list("event", "who", "about")
    assert line == ("export", "manage.py", "export_history --cluster a --format csv")


def test_export_merges_clusters_in_the_order_of_time(capsys):
    keep(a_change(1), a_change(3), a_change(2, cluster="b"), a_change(4, cluster="b"))
    call_command("export_history")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["cluster"] for line in lines] == ["a", "b", "a", "b"]


def test_export_goes_on_from_chunk_to_chunk(capsys, monkeypatch):
    monkeypatch.setattr(export, "CHUNK", 2)
    keep(*(a_change(n, uid=f"u-{n}", at=T0 + timedelta(seconds=n // 3)) for n in range(7)))
    call_command("export_history")
    uids = [json.loads(line)["uid"] for line in capsys.readouterr().out.splitlines()]
    assert uids == [f"u-{n}" for n in range(7)]


def test_export_names_what_is_wrong():
    with pytest.raises(CommandError, match="No history of a cluster called 'z'. Known: none yet"):
        call_command("export_history", "--cluster", "z")
    keep(a_change())
    with pytest.raises(CommandError, match="No history of a cluster called 'z'. Known: a"):
        call_command("export_history", "--cluster", "z")
    with pytest.raises(CommandError, match="--since 'noon' is not a time"):
        call_command("export_history", "--since", "noon")
    with pytest.raises(CommandError, match="is not a time"):
        call_command("export_history", "--since", "2026-13-45T00:00:00Z")
