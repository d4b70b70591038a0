"""The metrics as Prometheus reads them."""

from __future__ import annotations

from django.test import Client
from prometheus_client.parser import text_string_to_metric_families


def samples(**headers: str) -> dict[tuple[str, ...], float]:
    """Every sample as Prometheus reads it: its name, then its labels' values by their names."""
    answer = Client().get("/metrics", headers=headers)
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=")
    families = list(text_string_to_metric_families(answer.content.decode()))
    assert len({family.name for family in families}) == len(families)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }
