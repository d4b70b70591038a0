"""The security log, newest first."""

from typing import Any, cast

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from dashboard.access import security_log as stored_log
from dashboard.access.guards import ClusterRequest, right_required
from dashboard.access.roles import READ_SECURITY_LOG
from dashboard.access.security_log import OK, SecurityEvent, SecurityFilter
from dashboard.lists.declaration import Trail
from dashboard.lists.url_parameters import OF_A_TRAIL, Parameter, UrlState, one_of
from leases.models import SecurityRecord


def _in_words(event: SecurityEvent) -> str:
    words = event.replace("sign_", "sign-").replace("used_", "").replace("created", "made")
    return words.replace("_", " ").capitalize()


EVENTS = {event: _in_words(event) for event in SecurityEvent}


class SecurityList(UrlState, SecurityFilter, frozen=True, kw_only=True):
    PARAMETERS = {
        "event": Parameter("event", one_of, ("", *SecurityEvent)),
        "who": Parameter("who"),
        "address": Parameter("address"),
        "text": Parameter("q"),
        **OF_A_TRAIL,
    }
    page: int = 1
    limit: int = 50


class SecurityLog(Trail[SecurityList, SecurityRecord]):
    """Who came in or was refused, and who gave or took a right."""

    name = "security_log"
    reads = SecurityList
    templates = ("security_log/index.html", "security_log/_rows.html")
    fields = stored_log.FIELDS
    permission = READ_SECURITY_LOG
    file = "security"
    stored = stored_log

    def line(self, row: SecurityRecord) -> dict[str, Any]:
        row = stored_log.readable(row)
        event = EVENTS.get(row.event, row.event)  # type: ignore[call-overload]
        # Which symbol and colour an outcome has.
        return {"row": row, "event": event, "phase": "held" if row.outcome == OK else "expired"}

    def choices(self) -> dict[str, Any]:
        return {"events": [(event.value, label) for event, label in EVENTS.items()]}


@require_safe
@right_required(READ_SECURITY_LOG, "read the security log")
def security_log(request: HttpRequest) -> HttpResponseBase:
    """The lines that match, as a page or JSON; or all of them, streamed as CSV or NDJSON."""
    return SecurityLog(cast("ClusterRequest", request)).answer()
