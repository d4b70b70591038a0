"""Read the Nodes of a cluster, if we may, as the table that `kubectl get nodes` prints.

A Node object has 10 to 30 kB, mostly names of images; its table row and metadata have a tenth of
that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from leases.domain.node import POOL_LABELS, ZONE_LABELS, Node, first_label
from leases.kube.lease_client import PAGE, LeaseClient
from leases.wire.status import Gone

PATH = "/api/v1/nodes"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
SECONDS = 60.0  # per page


class _Column(msgspec.Struct, frozen=True):
    name: str


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    labels: dict[str, str] | None = None


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata


class _Row(msgspec.Struct, frozen=True, rename={"described": "object"}):
    cells: tuple[Any, ...]
    described: _Object


class _ListMetadata(msgspec.Struct, frozen=True, rename={"next_page": "continue"}):
    next_page: str = ""


class _Table(msgspec.Struct, frozen=True, rename="camel"):
    """meta.k8s.io/v1 Table; only the first page has the columns."""

    metadata: _ListMetadata
    column_definitions: tuple[_Column, ...] | None = None
    rows: tuple[_Row, ...] | None = None


async def list_nodes(client: LeaseClient, *, limit: int = PAGE) -> list[Node]:
    """Return every Node. Raises ApiError. If the list expires meanwhile, it starts again once."""
    try:
        return await _pages(client, limit)
    except Gone:
        return await _pages(client, limit)


async def _pages(client: LeaseClient, limit: int) -> list[Node]:
    found: list[Node] = []
    columns: list[str] = []
    token = ""
    while True:
        query = [("limit", str(limit))] + ([("continue", token)] if token else [])
        page = await client.read(
            PATH, _Table, "table of Nodes", query=query, within=SECONDS, accept=TABLE
        )
        columns = [column.name for column in page.column_definitions or ()] or columns
        found += [_node(row, columns) for row in page.rows or ()]
        token = page.metadata.next_page
        if not token:
            return found


def _node(row: _Row, columns: Sequence[str]) -> Node:
    labels = row.described.metadata.labels or {}
    status = row.cells[columns.index("Status")] if "Status" in columns else None
    return Node(
        name=row.described.metadata.name,
        ready=None if not isinstance(status, str) else status.split(",")[0] == "Ready",
        zone=first_label(labels, ZONE_LABELS),
        pool=first_label(labels, POOL_LABELS),
    )
