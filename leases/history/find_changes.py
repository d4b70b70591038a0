"""Find changes for the pages, newest first."""

import base64
import binascii
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from operator import ge, le

import msgspec

from leases import models
from leases.domain.change import Change, identity
from leases.history import indexed_search
from leases.history.database import Row
from leases.history.rows import FIELDS, to_change

LARGEST_ID = 2**63 - 1
MAX_CURSOR = 60  # characters; ours are shorter


class BadCursor(ValueError):
    """A page cursor that this server did not make."""


class ChangePage(msgspec.Struct, frozen=True):
    """A page of changes, newest first.

    One search reads a bounded number of rows, so a page of a rare match may be short or empty
    though `older` is set.
    """

    changes: list[Change]
    older: str | None  # cursor of the next page
    total: int  # all matches; a lower bound if not `exact`
    exact: bool


def recent(cluster: str, limit: int) -> list[Change]:
    rows = models.ChangeRecord.objects.filter(cluster=cluster).order_by("-at", "-id")
    return list(map(to_change, rows.values_list(*FIELDS)[:limit]))


def of_lease(cluster: str, namespace: str, name: str, limit: int) -> list[Change]:
    """Return the newest changes of one Lease, over all its generations."""
    rows = models.ChangeRecord.objects.filter(cluster=cluster, namespace=namespace, name=name)
    return list(map(to_change, rows.order_by("-at", "-id").values_list(*FIELDS)[:limit]))


def find(
    clusters: str | Sequence[str],
    wanted: indexed_search.HistoryFilter,
    *,
    before: str | None = None,
    limit: int,
) -> ChangePage:
    """Return one page of changes. Raises BadCursor if `before` is no cursor of an earlier page."""
    after = _read_cursor(before) if before else None
    names = (clusters,) if isinstance(clusters, str) else clusters
    sources = [one for name in names for one in indexed_search.streams(name, wanted)]
    if len(names) == 1:
        rows, more = _merged(sources, after=after, newest_first=True, limit=limit)
        total, exact = _total(sources)
    else:
        rows, more = _newest_of_several(sources, after, limit)
        total, exact = indexed_search.count_of(sources, indexed_search.FEW)
    older = write_cursor(more) if more else None
    return ChangePage([to_change(row) for row in rows], older, total, exact)


def known_clusters() -> list[str]:
    """Return every cluster that history has data of, by name."""
    watched = models.WatchRecord.objects.values_list("cluster", flat=True)
    return sorted({*watched, *indexed_search.stored_clusters()})


def oldest_first(
    cluster: str, wanted: indexed_search.HistoryFilter, *, chunk: int
) -> Iterator[Change]:
    """Yield every matching change, one chunk in memory at a time, with no open transaction."""
    sources = indexed_search.streams(cluster, wanted)
    after: indexed_search.Position | None = None
    while True:
        rows, after = _merged(sources, after=after, newest_first=False, limit=chunk)
        yield from map(to_change, rows)
        if after is None:
            return


def _newest_of_several(
    sources: list[indexed_search.Stream], after: indexed_search.Position | None, limit: int
) -> tuple[list[Row], indexed_search.Position | None]:
    """As `_merged`, newest first. Many streams are read by few statements: first where the rows
    stand, of each stream as many as the page may need, then the rows of the page alone.
    """
    budget = max(limit + 1, indexed_search.BUDGET // max(1, len(sources)))
    found, horizon = indexed_search.newest_of(sources, after=after, limit=limit + 1, budget=budget)
    if horizon is not None:  # up to there all streams were read
        found = [one for one in found if one >= horizon]
    more = found[limit - 1] if len(found) > limit else horizon
    return indexed_search.rows_at(found[:limit]), more


def _merged(
    sources: list[indexed_search.Stream],
    *,
    after: indexed_search.Position | None,
    newest_first: bool,
    limit: int,
) -> tuple[list[Row], indexed_search.Position | None]:
    """Merge the next rows of all streams. Returns where to continue; None at the end."""
    budget = max(limit, indexed_search.BUDGET // max(1, len(sources)))
    taken = [
        indexed_search.take(
            source, after=after, newest_first=newest_first, limit=limit + 1, budget=budget
        )
        for source in sources
    ]
    rows = sorted(
        (row for part in taken for row in part.rows),
        key=indexed_search.position,
        reverse=newest_first,
    )
    # Up to there all streams were read; None: to the end.
    looked = [part.looked_to for part in taken if part.looked_to is not None]
    horizon = (max if newest_first else min)(looked, default=None)
    if horizon is not None:
        before = ge if newest_first else le
        rows = [row for row in rows if before(indexed_search.position(row), horizon)]
    if len(rows) > limit:
        return rows[:limit], indexed_search.position(rows[limit - 1])
    return rows, horizon


def _total(sources: list[indexed_search.Stream]) -> tuple[int, bool]:
    """Count the matches up to FEW. Without a matching index, count only among the newest rows."""
    total = 0
    for source in sources:
        found, all_seen = indexed_search.count(source, indexed_search.FEW)
        total += found
        if not all_seen or total > indexed_search.FEW:
            return total, False
    return total, True


def write_cursor(reached: indexed_search.Position) -> str:
    text = f"{reached[0].isoformat()}|{reached[1]}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def older_than(shown: Sequence[Change], found: ChangePage, limit: int) -> str:
    """The cursor of the page below `shown`, at most `limit` changes; "" without one. Those may be
    newer than what history had. Of changes of one moment, some may come again, none is lost.
    """
    ends = [identity(changes[-1]) for changes in (shown, found.changes) if changes]
    if len(shown) < limit or ends[:1] == ends[1:]:
        return found.older or ""
    return write_cursor((shown[-1].at, LARGEST_ID))


def _read_cursor(cursor: str) -> indexed_search.Position:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        at, _, number = text.partition("|")
        moment = datetime.fromisoformat(at)
        place = moment.astimezone(UTC), int(number)
        if moment.tzinfo is None or not 0 <= place[1] <= LARGEST_ID:
            raise ValueError(text)
    except (ValueError, OverflowError, binascii.Error) as error:
        shown = cursor if len(cursor) <= MAX_CURSOR else cursor[: MAX_CURSOR - 1] + "…"
        raise BadCursor(
            f"before cannot be {shown!r}: it is not a page of this history. Start again without it."
        ) from error
    return place
