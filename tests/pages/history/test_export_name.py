"""How the file of an export is called."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dashboard.pages.history.changes import export_name
from leases.history.indexed_search import HistoryFilter

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
THREE = datetime(2026, 11, 22, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        (HistoryFilter(), "prod-history-20261122T120000Z"),
        (
            HistoryFilter(change=("expired", "released"), lease="kube-scheduler", since=THREE),
            "prod-history-expired-released-kube-scheduler-20261122T030000Z-20261122T120000Z",
        ),
        (HistoryFilter(until=THREE, inferred=False), "prod-history-seen-20261122T030000Z"),
        (HistoryFilter(holder='a"\r\n/../ü;b'), "prod-history-a-..-b-20261122T120000Z"),
        (HistoryFilter(text="x" * 500), f"prod-history-{'x' * 40}-20261122T120000Z"),
    ],
)
def test_a_file_is_called_by_cluster_filter_and_time(wanted: HistoryFilter, name: str) -> None:
    assert export_name("prod", wanted, NOW) == name
