"""The line of the Attention list for all abandoned Leases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.urls import reverse

from dashboard.pages.overview.attention_line import Attention
from dashboard.parts.change_sentence import Part
from dashboard.parts.formatting import age, counted, listed, span_of, when
from leases.tracking.tracked_lease import Tracked


def abandoned_line(
    cluster: str, excused: Sequence[Tracked], threshold: timedelta, now: datetime
) -> Attention | None:
    """It stands last: nobody waits for these Leases."""
    found = [lease for lease in excused if lease.abandoned]
    if not found:
        return None
    first = min(lease.phase_since for lease in found)
    names = listed([lease.key.name for lease in found])
    return Attention(
        rank=10.0,
        phase="abandoned",
        icon="st-vacant",
        namespace="",
        label=f"{counted(len(found), 'Lease')} abandoned",
        url=f"{reverse('leases', args=[cluster])}?abandoned=true",
        word="",
        why=(Part(f"Vacant for more than {span_of(threshold)}, or never renewed: {names}."),),
        amount=age((now - first).total_seconds()),
        moment=f"first at {when(first, now)}",
        since=first.timestamp(),
    )
