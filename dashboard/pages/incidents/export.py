"""An incident as JSON and as a line of CSV, see docs/api.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from leases.domain.cause.incident import Incident
from leases.domain.lease import ObjectName
from leases.history.read.csv_cells import csv_cell
from leases.wire.microtime import format_microtime, microtime_or_none

FIELDS = (
    "id", "cluster", "cause", "confidence", "sentence", "began", "ended", "leases", "hosts",
    "writer", "worst_gap_seconds", "changes", "evidence", "settled",
)  # fmt: skip


def incident_item(incident: Incident, changes: int) -> dict[str, Any]:
    """One incident in the order of FIELDS; `changes` is how many it has."""
    return {
        "id": incident.id,
        "cluster": incident.cluster,
        "cause": incident.cause.value,
        "confidence": incident.confidence.value,
        "sentence": incident.sentence,
        "began": format_microtime(incident.began),
        "ended": microtime_or_none(incident.ended),
        "leases": [_lease_item(key) for key in incident.leases],
        "hosts": list(incident.hosts),
        "writer": incident.writer,
        "worst_gap_seconds": incident.worst_gap_seconds,
        "changes": changes,
        "evidence": [
            {"sentence": one.sentence, "source": one.source.value} for one in incident.evidence
        ],
        "settled": incident.settled,
    }


def as_csv(found: Iterable[tuple[Incident, int]]) -> Iterator[str]:
    """A header and one line per incident. Lists are separated by spaces, evidence by line."""
    yield ",".join(FIELDS) + "\r\n"
    for incident, changes in found:
        item = incident_item(incident, changes) | {
            "leases": " ".join(map(str, incident.leases)),
            "hosts": " ".join(incident.hosts),
            "evidence": " | ".join(
                f"{one.source.value}: {one.sentence}" for one in incident.evidence
            ),
        }
        yield ",".join(csv_cell(item[name]) for name in FIELDS) + "\r\n"


def file_name(incident: Incident) -> str:
    """Such as `prod-incident-20261120T031231Z-node_down`; any name of a cluster is safe."""
    cluster = re.sub(r"[^A-Za-z0-9._]+", "-", incident.cluster)[:40].strip("-.")
    return f"{cluster}-incident-{incident.began:%Y%m%dT%H%M%SZ}-{incident.cause.value}"


def _lease_item(key: ObjectName) -> dict[str, str]:
    return {"namespace": key.namespace, "name": key.name}
