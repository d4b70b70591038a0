"""Name the file of an export by its cluster, its filter and its time."""

from __future__ import annotations

import re
from datetime import datetime

from dashboard.parts.query.history_url import filter_texts
from leases.history.read.indexed_search import HistoryFilter

MAX_PART = 40  # characters of one value
MAX_NAME = 180  # a file name has 255 bytes at most, with its ending


def export_name(cluster: str, wanted: HistoryFilter, now: datetime) -> str:
    """Such as `prod-history-expired-kube-scheduler-20261120T0300Z-20261120T0330Z`.

    An export without an end ends now. Any name is safe: other characters become a dash.
    """
    texts = filter_texts(wanted)
    values = [*wanted.change, *wanted.kind, *wanted.cause]
    values += [texts[name] for name in ("namespace", "lease", "holder", "q")]
    if wanted.inferred is not None:
        values.append("inferred" if wanted.inferred else "seen")
    parts = [_safe(value) for value in (cluster, "history", *values)]
    name = "-".join(part for part in parts if part)[:MAX_NAME]
    ends = [end for end in (wanted.since, wanted.until or now) if end is not None]
    return "-".join([name, *(f"{end:%Y%m%dT%H%M%SZ}" for end in ends)])


def _safe(value: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", value)[:MAX_PART].strip("-.")
