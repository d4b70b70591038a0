"""Pages over several clusters are cuts of one plain sort, whatever is filtered."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import msgspec
import pytest

from leases import models
from leases.domain.change import ChangeType
from leases.domain.kind import Kind
from leases.history import find_changes, indexed_search
from leases.history.indexed_search import HistoryFilter
from tests.support.values.change_rows import to_row
from tests.support.values.changes import T0, a_change

pytestmark = pytest.mark.django_db
CLUSTERS = [f"c{number}" for number in range(5)]


def remember(random: Random, number: int) -> None:
    """Changes of five clusters, many of them at once."""
    kinds, words = (Kind.ELECTION, Kind.LOCK), (ChangeType.ACQUIRED, ChangeType.RELEASED)
    rows = []
    for place in range(number):
        change = msgspec.structs.replace(
            a_change(place, at=T0 + timedelta(seconds=random.randrange(8))),
            cluster=random.choice(CLUSTERS),
            kind=random.choice(kinds),
            change=random.choice(words),
            name=random.choice(("red", "blue")),
            inferred=random.random() < 0.3,
        )
        rows.append(to_row(change))
    models.ChangeRecord.objects.bulk_create(rows)


FILTERS = (
    HistoryFilter(),
    HistoryFilter(kind=("election",)),
    HistoryFilter(kind=("election",), text="red"),
    HistoryFilter(text="blue"),
    HistoryFilter(inferred=True),
    HistoryFilter(inferred=False, change=("released",)),
    HistoryFilter(lease="red", since=T0 + timedelta(seconds=2), until=T0 + timedelta(seconds=6)),
)


def matches(row: models.ChangeRecord, wanted: HistoryFilter) -> bool:
    return (
        (not wanted.kind or row.kind in wanted.kind)
        and (not wanted.change or row.change in wanted.change)
        and wanted.text in row.name
        and wanted.lease in (None, row.name)
        and wanted.inferred in (None, row.inferred)
        and (wanted.since is None or wanted.since <= row.at)
        and (wanted.until is None or row.at < wanted.until)
    )


@pytest.mark.parametrize("seed", range(4))
def test_pages_are_the_plain_sort_of_all_clusters(seed, monkeypatch):
    random = Random(seed)  # noqa: S311
    monkeypatch.setattr(indexed_search, "BUDGET", random.choice((5, 30, 20_000)))
    monkeypatch.setattr(indexed_search, "AT_ONCE", random.choice((2, 200)))
    remember(random, 90)
    for wanted in FILTERS:
        names = sorted(random.sample(CLUSTERS, random.randint(2, 5)))
        plain = [
            row.resource_version
            for row in models.ChangeRecord.objects.filter(cluster__in=names).order_by("-at", "-id")
            if matches(row, wanted)
        ]
        limit, before, found = random.randint(1, 9), None, []
        while True:
            page = find_changes.find(names, wanted, before=before, limit=limit)
            assert len(page.changes) <= limit
            found += page.changes
            before = page.older
            if before is None:
                break
        of_one = [find_changes.find(name, wanted, limit=1000).changes for name in names]
        assert len(found) == len(plain) == sum(map(len, of_one))
        assert [change.resource_version for change in found] == plain
        assert page.total <= len(plain)
        assert page.total == len(plain) or not page.exact
