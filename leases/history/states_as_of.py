"""The state of Leases at an instant, and who held what in a range.

For each Lease it reads the last change that names the holder, and the change that began its term or
gap.

Only changes that end a term are read, so the cost does not depend on the whole history.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

import msgspec

from leases.domain.change import Change, ChangeType
from leases.domain.figures import DEFAULT_ABANDONED_AFTER, abandoned_from
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.steady_clock import LATEST
from leases.domain.terms import PastPhase, PastState
from leases.history.database import (
    Row,
    as_asked,
    asked_table,
    by_index,
    from_stored,
    moment,
    select,
)
from leases.history.overrides import may_be_vacant_at
from leases.history.rows import FIELDS, stored_kind, to_change
from leases.models import BEGIN_A_SPAN

# After these, the term or gap of a Lease began with an earlier change.
_GO_ON = (ChangeType.EXPIRED, ChangeType.RECOVERED)
# An index, and the condition that it covers.
_LAST = ("change_by_lease", "1 = 1")
_SAYS = ("change_by_lease", f"change <> '{ChangeType.RECONFIGURED}'")
_BEGINS = ("change_begins", f"change IN {BEGIN_A_SPAN}")
_STANDING = ("change", "at", "holder", "uid", "kind", "transitions", "renewed_at")
CHANGE = FIELDS.index("change")
AT_ONCE = 1000  # instants in one statement


class State(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One Lease at an instant; its PastState has no term."""

    key: ObjectName
    uid: str
    kind: Kind
    standing: PastState
    transitions: int | None  # leaseTransitions in the last change
    abandoned: bool = False
    may_be_vacant: bool = False  # an admin had said so

    @property
    def excused(self) -> bool:
        """Whether it was no trouble that nobody held it; see `Tracked.excused`."""
        return self.abandoned or (self.may_be_vacant and self.standing.phase is PastPhase.VACANT)

    @property
    def free(self) -> bool:
        """Whether it was a lock that nobody held."""
        return self.kind is Kind.LOCK and self.standing.phase is PastPhase.VACANT


def states_at(
    cluster: str,
    keys: Sequence[ObjectName],
    at: datetime,
    *,
    abandoned_after: timedelta = DEFAULT_ABANDONED_AFTER,
) -> list[State]:
    """Return those of `keys` that existed at that instant, in their order.

    Pass the present names and those of `gone_since`: no other Lease can have existed.
    """
    asked = [(key, at) for key in keys]
    said = _last(cluster, asked, range(len(asked)), _SAYS, _STANDING)
    going_on = [number for number, row in said.items() if row[0] in _GO_ON]
    began = _last(cluster, asked, going_on, _BEGINS, _STANDING)
    marked = may_be_vacant_at(cluster, at)
    found = []
    for number, key in enumerate(keys):
        row = said.get(number)
        if row is None or row[0] == ChangeType.DELETED:
            continue
        change, since, holder, uid, kind, transitions, _ = row
        standing = _standing(change, moment(since), from_stored(holder), began.get(number))
        excused = key in marked and standing.phase is PastPhase.VACANT
        abandoned = None if excused else _abandoned_from(row, began.get(number), abandoned_after)
        found.append(
            State(
                key=key,
                uid=uid,
                kind=stored_kind(kind),
                standing=standing,
                transitions=transitions,
                abandoned=abandoned is not None and abandoned <= at,
                may_be_vacant=key in marked,
            )
        )
    return found


def _abandoned_from(row: Row, began: Row | None, threshold: timedelta) -> datetime | None:
    """Return from when a Lease counted as abandoned, by the same rule as that of the present."""
    change, at, holder, _, kind, _, renewed_at = row
    since = moment(at)
    judge = partial(abandoned_from, kind=stored_kind(kind), since=since, threshold=threshold)
    renewed = None if renewed_at is None else moment(renewed_at)
    if change == ChangeType.EXPIRED:
        held_since = None if began is None else moment(began[1])
        return judge(Phase.EXPIRED, renewed_at=renewed, held_since=held_since)
    if holder is not None:
        return None
    if change != ChangeType.CREATED:  # it was held until then
        renewed = since
    return judge(Phase.VACANT, renewed_at=renewed, held_since=None)


def _standing(change: str, since: datetime, holder: str | None, began: Row | None) -> PastState:
    """Return what `domain.past.as_of` returns for these two changes."""
    phase, start = PastPhase.HELD, since or None
    if change == ChangeType.EXPIRED:
        phase = PastPhase.EXPIRED
    elif holder is None:
        phase = PastPhase.VACANT
    elif change == ChangeType.RECOVERED:
        start = moment(began[1]) if began else None
    return PastState(exists=True, holder=holder, phase=phase, since=start)


def born_later(cluster: str, keys: Iterable[ObjectName], at: datetime) -> set[ObjectName]:
    """Return those of `keys` whose first change after that instant is an observed creation."""
    sql = (
        f"SELECT change, inferred FROM {by_index('change_by_lease')} WHERE cluster = %s "  # noqa: S608
        f"AND namespace = %s AND name = %s AND at > %s ORDER BY at, id LIMIT 1"
    )
    found = set()
    for key in keys:
        rows = select(sql, [cluster, key.namespace, key.name, at])
        if rows and rows[0][0] == ChangeType.CREATED and not rows[0][1]:
            found.add(key)
    return found


def gone_since(
    cluster: str, at: datetime, kinds: Iterable[Kind] = (), until: datetime = LATEST
) -> set[ObjectName]:
    """Return the names deleted after that instant, and up to `until`; no kinds mean all."""
    table = by_index("change_by_kind")
    sql = (
        f"SELECT DISTINCT namespace, name FROM {table} "  # noqa: S608
        f"WHERE cluster = %s AND kind = %s AND change = %s AND at > %s AND at <= %s"
    )
    return {
        ObjectName(*row)
        for kind in kinds or Kind
        for row in select(sql, [cluster, kind.value, ChangeType.DELETED.value, at, until])
    }


def newest_gone(cluster: str, most: int) -> list[ObjectName]:
    """Return names among the newest `most` deletions of each kind; one may be there again."""
    newest = (
        f"SELECT namespace, name FROM {by_index('change_by_kind')} "  # noqa: S608
        f"WHERE cluster = %s AND kind = %s AND change = %s ORDER BY at DESC, id DESC LIMIT {most}"
    )
    found: dict[ObjectName, None] = {}
    for kind in Kind:
        rows = select(newest, [cluster, kind.value, ChangeType.DELETED.value])
        found.update((ObjectName(*row), None) for row in rows)
    return list(found)


def changes_before(
    cluster: str, keys: Sequence[ObjectName], at: datetime
) -> dict[ObjectName, list[Change]]:
    """Return, oldest first, the changes that define the state of each Lease at that instant.

    They are the last change, and the change that began the term if that is another one.
    """
    found = changes_at(cluster, [(key, at) for key in keys])
    return {key: changes for key, changes in zip(keys, found, strict=True) if changes}


def changes_at(cluster: str, asked: Sequence[tuple[ObjectName, datetime]]) -> list[list[Change]]:
    """Do the same with an instant for each name."""
    said = _last(cluster, asked, range(len(asked)), _SAYS, FIELDS)
    going_on = [number for number, row in said.items() if row[CHANGE] in _GO_ON]
    began = _last(cluster, asked, going_on, _BEGINS, FIELDS)
    return [
        [to_change(rows[number]) for rows in (began, said) if number in rows]
        for number in range(len(asked))
    ]


def kept_at(cluster: str, keys: Sequence[ObjectName], at: datetime) -> list[list[tuple[int, str]]]:
    """Return the rows (id and change) that later changes of each Lease depend on.

    The last change comes first, then the changes that define the state.
    """
    asked = [(key, at) for key in keys]
    rows = [
        _last(cluster, asked, range(len(asked)), wanted, ("id", "change"))
        for wanted in (_LAST, _SAYS, _BEGINS)
    ]
    return [[found[number] for found in rows if number in found] for number in range(len(asked))]


def _last(
    cluster: str,
    asked: Sequence[tuple[ObjectName, datetime]],
    numbers: Sequence[int],
    wanted: tuple[str, str],
    fields: Sequence[str],
) -> dict[int, Row]:
    """Return the newest of the wanted changes up to each instant, by number."""
    index, condition = wanted
    newest = (
        f"SELECT id FROM {by_index(index)} WHERE cluster = %s AND namespace = asked.namespace "  # noqa: S608
        f"AND name = asked.name AND at <= asked.at AND {condition} "
        f"ORDER BY at DESC, id DESC LIMIT 1"
    )
    columns = ", ".join(f"newest.{field}" for field in fields)
    found: dict[int, Row] = {}
    for start in range(0, len(numbers), AT_ONCE):
        rows = select(
            f"SELECT {columns}, asked.number FROM {asked_table('at')} "  # noqa: S608
            f"CROSS JOIN leases_change AS newest WHERE newest.id = ({newest})",
            [as_asked(numbers[start : start + AT_ONCE], asked), cluster],
        )
        found.update((int(row[-1]), row[:-1]) for row in rows)
    return found


MAX_CHANGES = 5000  # changes read of one kind and type, the newest
# Each ends a term of the previous holder; after the last one the same holder continues.
_ENDS = (
    ChangeType.RELEASED,
    ChangeType.TAKEN_OVER,
    ChangeType.REPLACED,
    ChangeType.DELETED,
    ChangeType.RESTARTED,
)


class EndedTerms(msgspec.Struct, frozen=True, gc=False):
    holder: str
    key: ObjectName
    kind: Kind
    terms: int


class Past(msgspec.Struct, frozen=True):
    """`since` is where reading began: later than asked for if there were too many changes."""

    ended: tuple[EndedTerms, ...]
    since: datetime


def newest_former_holders(cluster: str, kinds: Iterable[Kind], most: int) -> list[str]:
    """Return who held Leases of these kinds, from the newest `most` terms of each kind that ended
    in each way; one may hold some again.
    """
    found: dict[str, None] = {}
    for kind in kinds:
        for change in _ENDS:
            column = _ender(change)
            rows = select(
                f"SELECT {column} FROM {by_index('change_by_kind')} "  # noqa: S608
                f"WHERE cluster = %s AND kind = %s AND change = %s AND {column} IS NOT NULL "
                f"ORDER BY at DESC, id DESC LIMIT {most}",
                [cluster, kind.value, change.value],
            )
            found.update((from_stored(holder), None) for (holder,) in rows)
    return list(found)


def _ender(change: ChangeType) -> str:
    """The column with whose term ended."""
    return "holder" if change is ChangeType.RESTARTED else "previous_holder"


def ended_terms(cluster: str, kinds: Iterable[Kind], since: datetime) -> Past:
    """Return the terms of Leases of these kinds that ended since then."""
    counts: Counter[tuple[str, ObjectName, Kind]] = Counter()
    begins = since
    for kind in kinds:
        for change in _ENDS:
            for holder, key, number, reached in _of(cluster, kind, change, since):
                counts[holder, key, kind] += number
                begins = max(begins, reached)
    ended = tuple(EndedTerms(*which, number) for which, number in counts.items())
    return Past(ended, begins)


def _of(
    cluster: str, kind: Kind, change: ChangeType, since: datetime
) -> Iterator[tuple[str, ObjectName, int, datetime]]:
    """Return holder, Lease, number of terms, and from when on all of them were read."""
    edge = _edge(cluster, kind, change, since)
    column = _ender(change)
    rows = select(
        f"SELECT {column}, namespace, name, COUNT(*) FROM {by_index('change_by_kind')} "  # noqa: S608
        "WHERE cluster = %s AND kind = %s AND change = %s AND at >= %s "
        f"AND {column} IS NOT NULL GROUP BY {column}, namespace, name",
        [cluster, kind.value, change.value, edge],
    )
    for holder, namespace, name, number in rows:
        yield from_stored(holder), ObjectName(namespace, name), number, edge


def _edge(cluster: str, kind: Kind, change: ChangeType, since: datetime) -> datetime:
    """Return where to start so that at most MAX_CHANGES are read."""
    rows = select(
        f"SELECT at FROM {by_index('change_by_kind')} "  # noqa: S608
        "WHERE cluster = %s AND kind = %s AND change = %s AND at >= %s "
        f"ORDER BY at DESC, id DESC LIMIT 1 OFFSET {MAX_CHANGES}",
        [cluster, kind.value, change.value, since],
    )
    return moment(rows[0][0]) if rows else since
