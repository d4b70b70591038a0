"""Who made a change through Leaseboard, for those who may read the audit trail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.urls import reverse

from dashboard.access.roles import READ_TRAIL
from dashboard.parts.audit_line import AuditLine, audit_line
from dashboard.parts.change_sentence import ChangeLine, WrittenBy, change_line
from leases.domain.changes.change import Change
from leases.domain.lease import ObjectName
from leases.history.read.audit_trail import AuditFilter, matching, writes_of

LAST = 5  # writes that a Lease's page shows

User = AbstractBaseUser | AnonymousUser


def signed_lines(changes: Sequence[Change], now: datetime, user: User) -> list[ChangeLine]:
    """Present changes, each with who made it."""
    lines = [change_line(change, now) for change in changes]
    if not changes or not _may_read(user):
        return lines
    writes = writes_of(changes)
    return [
        msgspec.structs.replace(
            line, written_by=WrittenBy(row.username, reverse("audit_row", args=[row.pk]))
        )
        if (row := writes.get(line.change))
        else line
        for line in lines
    ]


def last_writes(cluster: str, key: ObjectName, user: User) -> list[AuditLine]:
    """Return the newest writes of one Lease."""
    if not _may_read(user):
        return []
    rows = matching(AuditFilter(cluster=cluster, lease=key))[:LAST]
    return [audit_line(row) for row in rows]


def _may_read(user: User) -> bool:
    return user.has_perm(READ_TRAIL)  # type: ignore[union-attr]
