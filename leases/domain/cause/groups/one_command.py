"""Group what one command of a person did to several Leases."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

import msgspec

from leases.domain.cause.groups.judged import Group, Judged, chains, several
from leases.domain.cause.incident import Cause
from leases.domain.changes.change import ChangeType
from leases.domain.kind import Kind

BURST = timedelta(seconds=2)  # one command on several Leases


def bursts(left: list[Judged]) -> list[Group]:
    """One command of a person on several Leases."""
    by_writer: dict[tuple[str, ChangeType], list[Judged]] = defaultdict(list)
    for one in left:
        if one.verdict.cause is Cause.BY_HAND and one.verdict.writer:
            by_writer[one.verdict.writer, one.episode.opening].append(one)
        elif one.verdict.cause in (Cause.BY_HAND, Cause.DELETED) and _is_deletion(one):
            by_writer[one.episode.key.namespace, ChangeType.DELETED].append(one)
        elif one.verdict.cause is Cause.SCALED_DOWN:
            by_writer[one.verdict.confidence, ChangeType.RELEASED].append(one)
    groups = []
    for there in several(by_writer):
        ordered = sorted(there, key=_ends_at)
        for chain in chains(ordered, BURST, _ends_at):
            if len({one.verdict.cause for one in chain}) == 1 and len(chain) > 1:
                first, more = chain[0].verdict, len(chain) - 1
                sentence = f"{first.sentence}, and {more} more Lease{'s' if more > 1 else ''}"
                groups.append(
                    Group(tuple(chain), msgspec.structs.replace(first, sentence=sentence))
                )
    return groups


def _is_deletion(one: Judged) -> bool:
    return one.episode.kind is not Kind.LOCK


def _ends_at(one: Judged) -> datetime:
    """When a person's command reached it: it is deleted after its users were stopped."""
    if one.verdict.cause is Cause.DELETED:
        return one.episode.last.change.at
    return one.at
