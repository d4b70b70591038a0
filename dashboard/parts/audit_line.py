"""One row of the audit trail, as the page shows it, and what it keeps of the person who asks."""

from datetime import datetime
from typing import Any, cast

import msgspec
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from dashboard import clock
from dashboard.access.security_log import full_address
from dashboard.parts.formatting import shortened
from dashboard.parts.names import lease_url
from dashboard.watched_cluster import WatchedCluster
from leases.actions import audit
from leases.actions.audit import Intent
from leases.domain.lease import ObjectName
from leases.history.audit_trail import changes_of, readable
from leases.history.database import from_stored
from leases.models import Edit

OUTCOMES = {
    audit.DONE: "Done",
    Edit.INTENDED: "Open",
    audit.REFUSED: "Refused",
    audit.FAILED: "Failed",
    audit.NOT_DONE: "Not done",
    audit.UNKNOWN: "Unknown",
}
ACTIONS = {
    "lease.create": "Create",
    "lease.edit": "Edit",
    "lease.release": "Release",
    "lease.hand_over": "Hand over",
    "lease.delete": "Delete",
    "lease.yaml": "Edit YAML",
    "lease.overrule_kind": "Set kind",
    "lease.may_be_vacant": "Set vacancy",
    "reliability.objective": "Set objective",
}
PHASES = {
    audit.DONE: "held",
    Edit.INTENDED: "late",
    audit.REFUSED: "expired",
    audit.FAILED: "expired",
    audit.NOT_DONE: "vacant",
    audit.UNKNOWN: "late",
}
MEANS = {
    audit.DONE: "It was carried out.",
    Edit.INTENDED: "Whether the cluster carried it out is not known yet. Leaseboard looks every "
    "few seconds, and decides within a minute if the cluster answers.",
    audit.REFUSED: "The cluster refused it. Nothing was written.",
    audit.FAILED: "Nothing was written.",
    audit.NOT_DONE: "It did not happen. Leaseboard found this out afterwards, from the cluster.",
    audit.UNKNOWN: "The cluster no longer shows whether it happened.",
}
MAX_BRIEF = 2  # fields of a write in a list
_TIMES = ("spec.acquireTime", "spec.renewTime")
MAX_SHOWN = 200  # characters of a value


class FieldLine(msgspec.Struct, frozen=True):
    """One changed field in words."""

    field: str
    before: str
    after: str


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """`phase` names the colour of the outcome; `answer` is what the API said, in one line."""

    row: Edit
    url: str
    lease_url: str
    action: str
    outcome: str
    phase: str
    means: str
    reason: str
    detail: str
    fields: tuple[FieldLine, ...]
    answer: str
    at: datetime

    @property
    def brief(self) -> tuple[FieldLine, ...]:
        """The fields for a list: times only if nothing else changed, names without their part."""
        brief = [one for one in self.fields if one.field not in _TIMES] or self.fields
        return tuple(
            FieldLine(
                one.field.removeprefix("spec.").removeprefix("metadata."), one.before, one.after
            )
            for one in brief[:MAX_BRIEF]
        )

    @property
    def more(self) -> bool:
        return len(self.brief) < len(self.fields)

    @property
    def remark(self) -> str:
        """The detail, unless it says only that the first attempt succeeded."""
        return "" if self.detail == "written at attempt 1" else self.detail

    @property
    def key(self) -> str:
        return f"{self.row.namespace}/{self.row.name}"


def audit_line(row: Edit) -> AuditLine:
    row = readable(row)
    key = ObjectName(row.namespace, row.name)
    return AuditLine(
        row=row,
        url=reverse("audit_row", args=[row.pk]),
        lease_url=_page_of(row.cluster, key),
        action=ACTIONS.get(row.action, row.action),
        outcome=OUTCOMES.get(row.outcome, row.outcome),
        phase=PHASES.get(row.outcome, "late"),
        means=MEANS.get(row.outcome, ""),
        reason=from_stored(row.reason),
        detail=from_stored(row.detail),
        fields=tuple(
            FieldLine(str(one["field"]), shown(one["from"]), shown(one["to"]))
            for one in changes_of(row)
        ),
        answer=_answer(row),
        at=row.at,
    )


def shown(value: Any) -> str:
    """A value of a field in words."""
    if value is None:
        return "not set"
    if value == "":
        return "empty"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return shortened(text, MAX_SHOWN)


def _page_of(cluster: str, key: ObjectName) -> str:
    """The page of the Lease; empty for names that no Lease can have, as a refused create may."""
    try:
        return lease_url(cluster, key)
    except NoReverseMatch:
        return ""


def _answer(row: Edit) -> str:
    code, reason = row.answer.get("code"), row.answer.get("reason")
    if code is None:
        return ""
    return f"{code} {reason}".strip() if code else "no answer"


def intent_of(
    request: HttpRequest,
    cluster: WatchedCluster,
    key: ObjectName,
    *,
    action: str,
    reason: str,
    once: str = "",
    batch: str = "",
) -> Intent:
    """Make the intent of the signed-in person. Reads `request.user`: not on the event loop."""
    user = cast("User", request.user)
    return Intent(
        user=user,
        cluster=cluster.name,
        key=key,
        action=action,
        reason=reason,
        at=clock.now(),
        once=once,
        batch=batch,
        address=full_address(request.META.get("REMOTE_ADDR")),
        as_user=cluster.acting_user(user),
    )
