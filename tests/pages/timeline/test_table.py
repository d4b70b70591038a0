"""The lanes of the timeline in words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from leases.domain.change import ChangeType
from leases.domain.kind import Kind
from leases.models import WatchSpan
from tests.support.board import KEY


@pytest.fixture
def rows(operator, now):
    """Read the rows of the scheduler: holder, length and end of each, and whether it goes on."""

    def read(range_: str) -> list[tuple[str, str, str, bool]]:
        html = operator.get(f"/c/a/timeline/?view=table&range={range_}").content.decode()
        table = html[html.index(f">{KEY}<") :]
        cells = [
            [
                re.sub(r"<[^>]*>|\s+", " ", cell).strip()
                for cell in re.findall("(?s)<td.*?</td>", row)
            ]
            for row in re.split(r"<th role=\"rowheader\"", table)[0].split("</tr>")
        ]
        return [(one[0], one[3], one[4], one[2] == "now") for one in cells if len(one) == 5]

    return read


def test_only_a_gap_of_a_lock_is_no_trouble(store, remember, operator, now):
    remember(50, ChangeType.CREATED, "cp-1")
    remember(30, ChangeType.RELEASED, previous="cp-1")
    remember(20, ChangeType.ACQUIRED, "cp-1")
    page = "/c/a/timeline/?view={}&range=1h&kind={}"
    at = f"&at={now - timedelta(minutes=25):%Y-%m-%dT%H:%M:%SZ}"
    for kind, quiet in ((Kind.ELECTION, False), (Kind.LOCK, True)):
        store.set_overrides({KEY: (kind, "set by ada")}, datetime.now(UTC))
        table = operator.get(page.format("table", kind.value)).content.decode()
        assert "no holder</td>" in table
        assert ('<tr role="row" class="is-expired">' in table) is not quiet
        lanes = operator.get(page.format("lanes", kind.value) + at).content.decode()
        css = "vacant" if quiet else "expired"
        assert f'<span class="state is-{css}" data-instant' in lanes
        assert ("no holder: a lock needs none</span>" in lanes) is quiet
        assert (
            'fill="url(#hatch)" width="20" height="12"/></svg>no holder</span>' in lanes
        ) is not quiet


def watched(now, *minutes: tuple[float, float]) -> None:
    WatchSpan.objects.all().delete()
    for since, until in minutes:
        ends = [now - timedelta(minutes=one) for one in (since, until)]
        WatchSpan.objects.create(cluster="a", process="p", since=ends[0], until=ends[1])


def test_a_part_of_a_term_that_ran_out_says_so_and_the_last_goes_on(store, remember, rows):
    remember(300, ChangeType.CREATED, "cp-0")
    remember(50, ChangeType.TAKEN_OVER, "cp-1", previous="cp-0")
    remember(40, ChangeType.EXPIRED, "cp-1", previous="cp-1")
    remember(38, ChangeType.RECOVERED, "cp-1", gap_seconds=120.0)
    remember(30, ChangeType.REPLACED, "cp-2", previous="cp-1")
    remember(20, ChangeType.EXPIRED, "cp-2", previous="cp-2")
    remember(19, ChangeType.RECOVERED, "cp-2", gap_seconds=60.0)
    found = rows("1h")[1:]
    assert [(holder, end) for holder, _, end, _ in found] == [
        ("cp-1", "it expired"),
        ("no holder", ""),
        ("cp-1", "replaced while it still held"),
        ("cp-2", "it expired"),
        ("no holder", ""),
        ("cp-2", ""),
    ]
    assert [goes_on for *_, goes_on in found] == [False] * 5 + [True]
    assert [length for _, length, *_ in found][:5] == [
        "10 m 0 s", "2 m 0 s", "8 m 0 s", "10 m 0 s", "1 m 0 s",
    ]  # fmt: skip


def test_a_length_counts_watched_time_alone(store, remember, rows, now):
    watched(now, (600, 45), (40, -1))
    remember(300, ChangeType.CREATED, "cp-0")
    remember(50, ChangeType.REPLACED, "cp-1", previous="cp-0")
    remember(44, ChangeType.REPLACED, "cp-2", previous="cp-1")
    remember(42, ChangeType.REPLACED, "cp-3", previous="cp-2")
    remember(30, ChangeType.REPLACED, "cp-4", previous="cp-3")
    assert [one[:3] for one in rows("1h")[1:4]] == [
        ("cp-1", "5 m 0 s", "replaced while it still held, 1 m 0 s of it not watched"),
        ("cp-2", "not watched", "replaced while it still held"),
        ("cp-3", "10 m 0 s", "replaced while it still held, 2 m 0 s of it not watched"),
    ]


def test_what_nobody_watched_of_a_gap_counts_before_the_range_too(store, remember, rows, now):
    watched(now, (600, 40), (10, -1))
    remember(300, ChangeType.CREATED, "cp-0")
    remember(35, ChangeType.EXPIRED, "cp-0", previous="cp-0")
    remember(12, ChangeType.TAKEN_OVER, "cp-1", previous="cp-0", gap_seconds=1380.0)
    gap, held = rows("15m")
    assert gap[:2] == ("no holder", "at most 23 m 0 s")
    assert gap[2] == "none of it watched"
    assert held[2] == "2 m 0 s of it not watched"
