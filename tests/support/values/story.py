"""Changes for the tests of terms, at seconds after noon."""

from __future__ import annotations

from typing import Any

from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.terms import Gap, Term
from tests.support.values.leases import after

TAKES_NAME_OFF = {ChangeType.RELEASED, ChangeType.DELETED}


def change_at(seconds: float, change: str, holder: str | None = None, **given: Any) -> Change:
    """One change; of `released` and `deleted`, `holder` is the one before."""
    word = ChangeType(change)
    names = {"holder": holder}
    if word in TAKES_NAME_OFF:
        names = {"holder": None, "previous_holder": holder}
    values: dict[str, Any] = {
        "cluster": "c",
        "namespace": "default",
        "name": "controller",
        "uid": "u-1",
        "kind": Kind.ELECTION,
        "change": word,
        "at": after(seconds),
        "observed_at": after(seconds),
        **names,
    }
    return Change(**(values | given))


def gap(
    since: float,
    until: float | None,
    cause: str | None,
    holder: str | None,
    by: str | None,
    *,
    vacant: float | None = None,
    inferred: bool = False,
) -> Gap:
    return Gap(
        since=after(since),
        until=None if until is None else after(until),
        after=None if cause is None else ChangeType(cause),
        holder=holder,
        ended_by=None if by is None else ChangeType(by),
        inferred=inferred,
        vacant_since=None if vacant is None else after(vacant),
    )


def term(
    holder: str,
    since: float,
    until: float | None,
    began: str | None,
    ended: str | None,
    **given: Any,
) -> Term:
    values: dict[str, Any] = {
        "holder": holder,
        "uid": "u-1",
        "began": None if began is None else ChangeType(began),
        "since": after(since),
        "until": None if until is None else after(until),
        "ended": None if ended is None else ChangeType(ended),
        "observed_at": after(since),
    }
    return Term(**(values | given))
