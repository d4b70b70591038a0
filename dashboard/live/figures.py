"""The key figures of a cluster in a live frame: each number with its caption, made of one count."""

from __future__ import annotations

from dashboard.parts.key_figures import counted_kpis
from leases.tracking.store import Store

Figure = tuple[str, str, bool]  # its number, its caption, whether it is bad
Figures = dict[str, Figure]


def figures_of(store: Store) -> Figures:
    """By their names, as the page that is drawn whole has them; none before a list was read."""
    if not store.known:
        return {}
    return {
        kpi.figure: ("".join(number for number, _ in kpi.value), kpi.detail, kpi.bad)
        for kpi in counted_kpis(store.cluster, store.counts())
    }
