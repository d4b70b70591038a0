"""Every partial in every state on one page, to compare after a change of style."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import check_view
from dashboard.board import running_board
from dashboard.pages.components.chart_samples import HOURS, board_samples
from dashboard.pages.components.incident_samples import incident_samples
from dashboard.pages.components.lease_page_samples import lease_samples
from dashboard.pages.components.sample_leases import (
    sample_changes,
    sample_flapping,
    sample_lease,
    sample_leases,
)
from dashboard.pages.lease.fields import fact_groups
from dashboard.pages.lease.yaml_lines import yaml_lines
from dashboard.pages.overview.attention import attention
from dashboard.parts.change_sentence import change_line
from dashboard.parts.holder_name import HUES, HolderView
from dashboard.parts.lease.head import lease_view
from dashboard.parts.lease.row import row_view
from dashboard.parts.lease.wall_tile import wall_tile
from leases.domain.phase import Phase

MEANINGS = {
    "held": ("Filled disc", "Renewed within its usual interval."),
    "late": ("Half-filled disc", "Past the usual interval, not expired."),
    "expired": ("Triangle", "Its duration has passed since we saw the last renewal."),
    "vacant": ("Dashed ring", "No holder: released, or never acquired."),
    "untimed": ("Square with a dash", "Held, but without a duration: it cannot expire."),
    "deleted": ("Cross", "The object is gone. In History, and where it stood."),
}


@require_safe
def components(request: HttpRequest) -> HttpResponseBase:
    """States, rows, heads, lanes, sentences, notes and empty places."""
    refusal = check_view(request)
    if refusal is not None:
        return refusal
    now = clock.now()
    cluster = next(iter(running_board().clusters))
    leases = sample_leases(now)
    changes, flapping = sample_changes(cluster, now), sample_flapping(now)
    flapper = sample_lease(Phase.HELD, now, "flapping")
    states = [*((lease, None) for lease in leases), (flapper, flapping)]
    context = {
        "meanings": [(phase, *words) for phase, words in MEANINGS.items()],
        "holders": [HolderView("", f"holder {hue}", "", "", hue) for hue in range(1, HUES + 1)],
        "rows": [row_view(cluster, lease, now, hours=HOURS, flapping=how) for lease, how in states],
        "heads": [lease_view(cluster, lease, now, flapping=how) for lease, how in states],
        "tiles": [wall_tile(cluster, lease, now, flapping=how) for lease, how in states],
        "attention": attention(
            cluster, leases, now=now, flapping=[(flapper, flapping)], missed=changes[-1:]
        ),
        "lines": [change_line(change, now) for change in changes],
        "groups": fact_groups(sample_lease(Phase.HELD, now), now),
        "yaml": yaml_lines(leases[0].lease),
        **lease_samples(cluster, now),
        **board_samples(cluster, now),
        **incident_samples(cluster, now),
    }
    return render(request, "components/index.html", context)
