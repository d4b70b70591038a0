"""The lines of the Attention list for Leases that flap, many of a kind in one line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.pages.overview.attention_line import MANY, Attention
from dashboard.parts.change_sentence import Part
from dashboard.parts.formatting import counted, listed, span_of, when
from dashboard.parts.key_figures import of_kind
from dashboard.parts.lease.flapping import ONE_HOLDER, flap_view
from dashboard.parts.lease.row import lease_url, short_name
from leases.domain.kind import Kind
from leases.domain.past.flapping import RULES, Flapping
from leases.domain.severity import FLAPPING_SEVERITY
from leases.tracking.tracked_lease import Tracked

_FLAPPING: dict[str, Any] = {"phase": "late", "icon": "i-flap", "word": "Flapping."}


def flapping_lines(
    cluster: str, found: Sequence[tuple[Tracked, Flapping]], now: datetime
) -> list[Attention]:
    groups: dict[Kind, list[tuple[Tracked, Flapping]]] = defaultdict(list)
    for lease, how in found:
        groups[lease.kind].append((lease, how))
    lines = []
    for kind, some in groups.items():
        if len(some) >= (MANY if kind is Kind.ELECTION else 2):
            lines.append(_many_flapping(cluster, kind, some, now))
        else:
            lines += [_one_flapping(cluster, lease, how, now) for lease, how in some]
    return lines


def _one_flapping(cluster: str, lease: Tracked, how: Flapping, now: datetime) -> Attention:
    view = flap_view(how, lease.kind)
    return Attention(
        namespace=lease.key.namespace,
        label=lease.key.name,
        url=lease_url(cluster, lease.key),
        why=(Part(view.says),),
        amount=view.amount,
        moment=f"since {when(how.since, now)}",
        **_FLAPPING,
        rank=_flapping_rank(lease.kind),
    )


def _many_flapping(
    cluster: str, kind: Kind, found: Sequence[tuple[Tracked, Flapping]], now: datetime
) -> Attention:
    query = urlencode({"kind": kind.value, "flapping": "true"})
    spaces = {lease.key.namespace for lease, _ in found}
    verb = "expires" if kind in ONE_HOLDER else "changes its holder"
    often = f"each {verb} {RULES[kind].number} times or more in {span_of(RULES[kind].within)}"
    return Attention(
        namespace=spaces.pop() if len(spaces) == 1 else "",
        label=listed([short_name(lease) for lease, _ in found]),
        url=f"{reverse('leases', args=[cluster])}?{query}",
        why=(Part(f"{of_kind(len(found), kind)}: {often}."),),
        amount=counted(sum(how.changes for _, how in found), "change"),
        moment=f"since {when(min(how.since for _, how in found), now)}",
        **_FLAPPING,
        rank=_flapping_rank(kind),
    )


def _flapping_rank(kind: Kind) -> float:
    return FLAPPING_SEVERITY + (0.0 if kind is Kind.ELECTION else 0.1)
