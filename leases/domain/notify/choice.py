"""Which incidents a receiver wants."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

from leases.domain.cause.incident import Cause
from leases.domain.changes.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.notify.message import Stage
from leases.domain.phase import Phase

_VACATED = frozenset({ChangeType.RELEASED, ChangeType.DELETED})


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """An empty field chooses all. A Lease is a pattern such as `kube-system/*`, or a bare name."""

    stages: tuple[Stage, ...] = ()
    causes: tuple[Cause, ...] = ()
    phases: tuple[Phase, ...] = ()
    kinds: tuple[Kind, ...] = ()
    clusters: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    leases: tuple[str, ...] = ()


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What a choice looks at: an incident, and what its changes say."""

    cluster: str
    cause: Cause
    leases: tuple[ObjectName, ...]
    kinds: frozenset[Kind] = frozenset()
    phases: frozenset[Phase] = frozenset()


def chooses(choice: Choice, subject: Subject) -> bool:
    """Whether the receiver wants this incident, at whatever stage."""
    return (
        (not choice.causes or subject.cause in choice.causes)
        and (not choice.clusters or subject.cluster in choice.clusters)
        and (not choice.kinds or not subject.kinds.isdisjoint(choice.kinds))
        and (not choice.phases or not subject.phases.isdisjoint(choice.phases))
        and (
            not (choice.namespaces or choice.leases)
            or any(_is_chosen(choice, lease) for lease in subject.leases)
        )
    )


def _is_chosen(choice: Choice, lease: ObjectName) -> bool:
    if choice.namespaces and lease.namespace not in choice.namespaces:
        return False
    return not choice.leases or any(
        fnmatchcase(str(lease) if "/" in pattern else lease.name, pattern)
        for pattern in choice.leases
    )


def phases_of(changes: Iterable[Change]) -> frozenset[Phase]:
    """Return the phases that these changes led to."""
    return frozenset(map(_phase_after, changes))


def _phase_after(change: Change) -> Phase:
    if change.change is ChangeType.EXPIRED:
        return Phase.EXPIRED
    vacated = change.change in _VACATED or change.holder is None
    return Phase.VACANT if vacated else Phase.HELD
