"""Forgetting keeps what later changes begin with."""

from __future__ import annotations

from datetime import timedelta

import pytest

from leases import models
from leases.domain.change import ChangeType
from leases.history import retention
from leases.history.rows import to_row
from tests.history.factory import T0, a_change

pytestmark = pytest.mark.django_db


def kept() -> list[tuple[str, int]]:
    rows = models.Change.objects.order_by("name", "at")
    return [(row.name, row.transitions) for row in rows]


def test_old_changes_go_but_the_last_of_a_living_lease_stays(monkeypatch):
    monkeypatch.setattr(retention, "BATCH", 2)
    changes = [a_change(n) for n in range(6)]
    changes += [a_change(n, name="dead", uid=f"u-{n}", change=ChangeType.DELETED) for n in (1, 2)]
    changes += [a_change(n, name="quiet") for n in (0, 1)]
    models.Change.objects.bulk_create([to_row(change) for change in changes])
    cut = T0 + timedelta(seconds=4)
    rounds = []
    while forgotten := retention.prune_batch(cut):
        rounds.append(forgotten)
    assert rounds == [2, 2, 2]
    assert kept() == [("quiet", 1), ("scheduler", 3), ("scheduler", 4), ("scheduler", 5)]
