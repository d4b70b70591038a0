"""What admins say of Leases: the kind, and that they may be vacant."""

from datetime import datetime

from django.db.models import Q

from leases.domain.figures import Span
from leases.domain.kind import Kind, Verdict
from leases.domain.lease import ObjectName
from leases.models import KindOverride, VacancyMark


def load() -> dict[str, dict[ObjectName, Verdict]]:
    """Return kind and reason of every Lease with an override, by cluster."""
    found: dict[str, dict[ObjectName, Verdict]] = {}
    for row in KindOverride.objects.all():
        verdict = Kind(row.kind), f"set by {row.username}"
        found.setdefault(row.cluster, {})[ObjectName(row.namespace, row.name)] = verdict
    return found


def load_marks() -> dict[str, dict[ObjectName, str]]:
    """Return the Leases that may be vacant now, with the admin who said so, by cluster."""
    found: dict[str, dict[ObjectName, str]] = {}
    for row in VacancyMark.objects.filter(ended_at=None):
        found.setdefault(row.cluster, {})[ObjectName(row.namespace, row.name)] = row.username
    return found


def may_be_vacant_at(cluster: str, at: datetime) -> set[ObjectName]:
    """Return the Leases of which an admin had said it at that instant."""
    rows = VacancyMark.objects.filter(
        Q(ended_at=None) | Q(ended_at__gt=at), cluster=cluster, at__lte=at
    )
    return {ObjectName(*names) for names in rows.values_list("namespace", "name")}


def marks_between(cluster: str, since: datetime, until: datetime) -> dict[ObjectName, list[Span]]:
    """Return when in a range each Lease was marked as one that may be vacant."""
    rows = VacancyMark.objects.filter(
        Q(ended_at=None) | Q(ended_at__gt=since), cluster=cluster, at__lt=until
    )
    found: dict[ObjectName, list[Span]] = {}
    for row in rows:
        span = (row.at, row.ended_at or until)
        found.setdefault(ObjectName(row.namespace, row.name), []).append(span)
    return found
