"""The audit trail: every write through Leaseboard, newest first; and one of them."""

from typing import Any, cast

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.access.guards import ClusterRequest, check_view
from dashboard.access.roles import READ_TRAIL
from dashboard.board import running_board
from dashboard.lists.declaration import Trail
from dashboard.lists.url_parameters import (
    OF_A_TRAIL,
    BadFilter,
    Parameter,
    UrlState,
    one_of,
    quoted,
    text,
)
from dashboard.parts.audit_line import ACTIONS, OUTCOMES, AuditLine, audit_line
from leases.domain.lease import ObjectName
from leases.history import audit_trail
from leases.history.audit_trail import AuditFilter
from leases.models import Edit


def _lease(query: QueryDict, name: str) -> ObjectName | None:
    value = text(query, name)
    namespace, slash, lease = value.partition("/")
    if value and not (namespace and slash and lease):
        raise BadFilter(f"{name} cannot be {quoted(value)}: write its namespace/name.")
    return ObjectName(namespace, lease) if value else None


class AuditList(UrlState, AuditFilter, frozen=True, kw_only=True):
    PARAMETERS = {
        "text": Parameter("q"),
        "cluster": Parameter("cluster"),
        "lease": Parameter("lease", _lease),
        "user": Parameter("user"),
        "action": Parameter("action"),
        "outcome": Parameter("outcome", one_of, ("", *OUTCOMES)),
        "batch": Parameter("batch"),
        **OF_A_TRAIL,
    }
    page: int = 1
    limit: int = 50


class AuditTrail(Trail[AuditList, Edit]):
    """Every write through Leaseboard, newest first."""

    name = "audit"
    reads = AuditList
    templates = ("audit/index.html", "audit/_rows.html")
    fields = audit_trail.FIELDS
    permission = READ_TRAIL
    file = "audit"
    stored = audit_trail

    def cells(self, row: Edit) -> dict[str, Any]:
        item = self.item(row)
        return item | {"changes": "; ".join(map(audit_trail.change_text, item["changes"]))}

    def line(self, row: Edit) -> AuditLine:
        return audit_line(row)

    def choices(self) -> dict[str, Any]:
        return {
            "actions": ACTIONS.items(),
            "outcomes": OUTCOMES.items(),
            "names": sorted(running_board().clusters),
        }


@require_safe
def audit(request: HttpRequest) -> HttpResponseBase:
    """The rows that match, as a page or JSON; or all of them, streamed as CSV or NDJSON."""
    refusal = _check_access(request)
    return refusal or AuditTrail(cast("ClusterRequest", request)).answer()


@require_safe
def audit_row(request: HttpRequest, number: int) -> HttpResponseBase:
    """One row, under an address that stays."""
    refusal = _check_access(request)
    if refusal is not None:
        return refusal
    row = Edit.objects.filter(pk=number).first()
    if row is None:
        raise Http404(f"The audit trail has no row {number}.")
    watched = row.cluster in running_board().clusters
    return render(request, "audit/row.html", {"line": audit_line(row), "watched": watched})


def _check_access(request: HttpRequest) -> HttpResponseBase | None:
    refusal = check_view(request)
    if refusal is None and not request.user.has_perm(READ_TRAIL):
        raise PermissionDenied(f"{request.user} may not read the audit trail.")
    return refusal
