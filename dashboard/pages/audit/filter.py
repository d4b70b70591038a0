"""Read from a URL which rows of the audit trail are wanted, and write it back."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlencode

from django.http import QueryDict

from dashboard.parts.audit_line import OUTCOMES
from dashboard.parts.query.url_parameters import BadFilter, one_of, quoted, text
from dashboard.parts.query.url_time import read_moment, write_moment
from leases.domain.lease import ObjectName
from leases.history.read.audit_trail import AuditFilter

TEXTS = ("cluster", "user", "action", "batch", "q")


def read_audit_filter(query: QueryDict, now: datetime) -> AuditFilter:
    """A time of day means the last one before `until` or now. Raises BadFilter."""
    until = read_moment(query.get("until", ""), "until", now)
    texts = {name: text(query, name) for name in TEXTS}
    return AuditFilter(
        text=texts.pop("q"),
        **texts,
        lease=_lease(text(query, "lease")),
        outcome=one_of(query, "outcome", ("", *OUTCOMES)),
        since=read_moment(query.get("since", ""), "since", until or now),
        until=until,
    )


def filter_texts(wanted: AuditFilter) -> dict[str, str]:
    """Return each parameter of the URL; empty if it is not used."""
    return {
        "q": wanted.text,
        "cluster": wanted.cluster,
        "lease": "" if wanted.lease is None else str(wanted.lease),
        "user": wanted.user,
        "action": wanted.action,
        "outcome": wanted.outcome,
        "batch": wanted.batch,
        "since": write_moment(wanted.since),
        "until": write_moment(wanted.until),
    }


def audit_query(wanted: AuditFilter, **more: str) -> str:
    """Return the query string without empty parameters."""
    return urlencode({k: v for k, v in (filter_texts(wanted) | more).items() if v})


def _lease(value: str) -> ObjectName | None:
    namespace, slash, name = value.partition("/")
    if value and not (namespace and slash and name):
        raise BadFilter(f"lease cannot be {quoted(value)}: write its namespace/name.")
    return ObjectName(namespace, name) if value else None
