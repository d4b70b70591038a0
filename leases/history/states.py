"""How Leases stood at an instant, found without reading what came before: of each Lease the last
change that says who holds it, and the one that its term or gap began with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

import msgspec
from django.db import connection

from leases.domain.as_of import Standing, as_of
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.terms import STARTS, fold
from leases.history.select import by_index, columns_of, select, to_change

# What a Lease stands by after these was begun by an earlier change.
_GO_ON = frozenset({ChangeType.EXPIRED, ChangeType.RECOVERED})
_MARKS = (ChangeType.RECONFIGURED,)
_BEGINS = (*sorted(STARTS), ChangeType.RELEASED, ChangeType.DELETED)


class State(msgspec.Struct, frozen=True, kw_only=True):
    """One Lease as it stood at an instant."""

    key: ObjectName
    uid: str
    kind: Kind
    standing: Standing
    transitions: int | None  # leaseTransitions as the last change told it


def states_at(cluster: str, keys: Collection[ObjectName], at: datetime) -> list[State]:
    """Those of `keys` that were there at that instant, in the order of `keys`.

    Give the names that live now and those of `gone_since`: no other can have been there.
    """
    told = told_before(cluster, keys, at)
    found = []
    for key in keys:
        changes = told.get(key)
        if not changes:
            continue
        standing = as_of(fold(changes), at)
        if standing.exists:
            last = changes[-1]
            found.append(
                State(key=key, uid=last.uid, kind=last.kind, standing=standing,
                      transitions=last.transitions)
            )  # fmt: skip
    return found


def gone_since(cluster: str, at: datetime, kinds: Iterable[Kind] = ()) -> set[ObjectName]:
    """The names deleted after that instant; no kinds mean all."""
    table = by_index("change_by_kind")
    sql = (
        f"SELECT DISTINCT namespace, name FROM {table} "  # noqa: S608
        f"WHERE cluster = %s AND kind = %s AND change = %s AND at > %s"
    )
    return {
        ObjectName(*row)
        for kind in kinds or Kind
        for row in select(sql, [cluster, kind.value, ChangeType.DELETED.value, at])
    }


def told_before(
    cluster: str, keys: Collection[ObjectName], at: datetime
) -> dict[ObjectName, list[Change]]:
    """The changes, oldest first, by which each Lease stands at that instant: the one that says so,
    behind the one that its term began with where that is another."""
    told = told_at(cluster, [(key, at) for key in keys])
    return {key: changes for key, changes in zip(keys, told, strict=True) if changes}


def told_at(cluster: str, asked: Sequence[tuple[ObjectName, datetime]]) -> list[list[Change]]:
    """The same for each name at an instant of its own."""
    said = _last(cluster, asked, range(len(asked)), f"NOT {_in(_MARKS)}")
    going_on = [number for number, change in said.items() if change.change in _GO_ON]
    began = _last(cluster, asked, going_on, _in(_BEGINS)) if going_on else {}
    found = []
    for number in range(len(asked)):
        changes = (began.get(number), said.get(number))
        found.append([change for change in changes if change is not None])
    return found


def _last(
    cluster: str,
    asked: Sequence[tuple[ObjectName, datetime]],
    numbers: Iterable[int],
    wanted: str,
) -> dict[int, Change]:
    """The newest change, of those wanted, up to each instant that is asked for, by its number."""
    newest = (
        f"SELECT id FROM {by_index('change_by_lease')} WHERE cluster = %s "  # noqa: S608
        f"AND namespace = asked.namespace AND name = asked.name AND at <= asked.at AND {wanted} "
        f"ORDER BY at DESC, id DESC LIMIT 1"
    )
    instants = [(number, *asked[number]) for number in numbers]
    rows = select(
        f"SELECT {columns_of('told')}, asked.number FROM {_ASKED[connection.vendor]} AS asked "  # noqa: S608
        f"CROSS JOIN leases_change AS told WHERE told.id = ({newest})",
        [_encoded(instants), cluster],
    )
    return {int(row[-1]): to_change(row[:-1]) for row in rows}


_FIELDS = "value ->> 0 AS number, value ->> 1 AS namespace, value ->> 2 AS name, "
_ASKED = {
    "sqlite": f"(SELECT {_FIELDS} value ->> 3 AS at FROM json_each(%s))",  # noqa: S608
    "postgresql": f"(SELECT {_FIELDS} CAST(value ->> 3 AS timestamptz) AS at "  # noqa: S608
    "FROM json_array_elements(CAST(%s AS json)))",
}


def _encoded(instants: Iterable[tuple[int, ObjectName, datetime]]) -> str:
    """As one parameter, times as the column has them."""
    adapt = connection.ops.adapt_datetimefield_value
    return msgspec.json.encode(
        [(number, key.namespace, key.name, str(adapt(at))) for number, key, at in instants]
    ).decode()


def _in(changes: Sequence[ChangeType]) -> str:
    return f"change IN ({', '.join(repr(change.value) for change in changes)})"
