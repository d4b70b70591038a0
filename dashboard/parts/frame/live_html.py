"""Draw one Lease or change for the live socket, with the same partials as the first paint.

The HTML is the same for everybody; what a role may do shows through `<body data-may-edit>`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from functools import lru_cache

from django.template.loader import render_to_string
from msgspec.structs import replace

from dashboard.parts.change_sentence import change_line
from dashboard.parts.kept.flapping_leases import flapping_of
from dashboard.parts.lease.change_cause import ChangeCause, change_cause
from dashboard.parts.lease.head import lease_view
from dashboard.parts.lease.row import row_view
from dashboard.parts.lease.wall_tile import wall_tile
from dashboard.parts.query.watched_day import unwatched_by_hour
from leases.domain.changes.change import Change
from leases.history.read.hourly_activity import Activity
from leases.tracking.tracked_lease import Tracked

Draw = Callable[[str, Tracked, datetime, Activity], str]


def render_row(cluster: str, tracked: Tracked, now: datetime, activity: Activity) -> str:
    """A row of the Leases table."""
    hours, unwatched = activity.of(tracked.key, now), unwatched_by_hour(activity.watched, now)
    how = flapping_of(activity, tracked, now)
    row = row_view(cluster, tracked, now, hours=hours, unwatched=unwatched, flapping=how)
    return _plain("leases/_row.html", {"row": row})


def render_tile(cluster: str, tracked: Tracked, now: datetime, activity: Activity) -> str:
    """A tile of the wall."""
    tile = wall_tile(cluster, tracked, now, flapping=flapping_of(activity, tracked, now))
    return _plain("wall/_tile.html", {"tile": tile})


def render_lease(cluster: str, tracked: Tracked, now: datetime, activity: Activity) -> str:
    """The head of a Lease's page."""
    view = lease_view(cluster, tracked, now, flapping=flapping_of(activity, tracked, now))
    return _plain("leases/_summary.html", {"lease": view})


def render_now(cluster: str, tracked: Tracked, now: datetime, _activity: Activity) -> str:
    """The present Lease beside a form."""
    row = row_view(cluster, tracked, now)
    duration = tracked.lasting.lease.spec.lease_duration_seconds
    return _plain("leases/_now.html", {"row": row, "duration": duration, "as_of": now})


def render_change(change: Change, template: str, now: datetime) -> str:
    """A change with a template of CHANGES, drawn once for all pages."""
    return _draw_change(change, template, now.date(), change_cause(change, now))


@lru_cache(maxsize=512)
def _draw_change(change: Change, template: str, today: date, cause: ChangeCause | None) -> str:
    # The text has no ages: of the time only the date counts, and whether the cause is still sought.
    line = change_line(change, datetime.combine(today, time(12), UTC))
    return _plain(template, {"line": replace(line, cause=cause)})


def _plain(template: str, context: dict[str, object]) -> str:
    """Draw as an exact str: the encoder of frames refuses subclasses."""
    return str.__str__(render_to_string(template, context))


PARTS: dict[str, Draw] = {
    "row": render_row,
    "tile": render_tile,
    "lease": render_lease,
    "now": render_now,
}
CHANGES = {"line": "history/_change.html", "row": "history/_row.html"}
