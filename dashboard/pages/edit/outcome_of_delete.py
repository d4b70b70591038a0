"""What truly happened after a delete, as the watch reported it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from dashboard.pages.edit.what_happens import short
from dashboard.parts.formatting import age
from leases.domain.changes.change import Change, ChangeType
from leases.domain.lease import number_of
from leases.models import Edit


def since_delete(row: Edit, changes: Sequence[Change]) -> list[Change]:
    """The deletion and the changes after it, oldest first. `changes` are newest first.

    The deletion has a later resourceVersion than the one that the delete required.
    """
    required = number_of(row.request.get("resource_version"))
    found = [one for one in reversed(changes) if number_of(one.resource_version) >= required]
    first = next((n for n, one in enumerate(found) if one.change is ChangeType.DELETED), len(found))
    return found[first:]


def sentences_of_delete(since: Sequence[Change], now: datetime) -> Iterator[str]:
    """Who made it anew, and how soon."""
    if not since:
        yield "The watch has not reported it yet."
        return
    deleted_at = since[0].at
    anew = next((one for one in since if one.change is ChangeType.CREATED), None)
    if anew is None:
        yield f"Nobody has made it anew since, for {age((now - deleted_at).total_seconds())}."
        return
    later = age((anew.at - deleted_at).total_seconds())
    if anew.holder is None:
        yield f"Somebody made it anew {later} later, without a holder."
    else:
        yield f"{short(anew.holder)} made it anew {later} later."
