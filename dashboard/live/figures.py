"""The key figures of a cluster in a live frame: number and caption come from one count."""

from __future__ import annotations

from dashboard.parts.key_figures import counted_kpis
from leases.tracking.store import Store

Figure = tuple[str, str, bool]  # number, caption, whether it is bad
Figures = dict[str, Figure]


def figures_of(store: Store) -> Figures:
    """Key figures by name, as the whole page shows them; none before the first list."""
    if not store.known:
        return {}
    return {
        kpi.figure: ("".join(number for number, _ in kpi.value), kpi.detail, kpi.bad)
        for kpi in counted_kpis(store.cluster, store.counts(), store.excused())
    }
