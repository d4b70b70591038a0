"""Receivers of messages, and the incidents that they are told of."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from leases.domain.incident import Incident
from leases.domain.notify import Choice
from leases.history.insert_incidents import IncidentBatch, Reviewed, write_incidents_of
from leases.models import Receiver
from tests.support.values.changes import T0


def a_receiver(name: str = "ops", choice: Choice | None = None, **given: Any) -> Receiver:
    values = {"sort": "webhook", "sealed": "", "created_at": T0 - timedelta(days=1)}
    chosen = msgspec.json.encode(choice or Choice()).decode()
    return Receiver.objects.create(name=name, choice=chosen, **(values | given))


def record(*incidents: Incident, at: datetime = T0) -> None:
    """Write incidents as the recorder does."""
    reviewed = tuple(Reviewed(one, at) for one in incidents)
    write_incidents_of(IncidentBatch(incidents[0].cluster, reviewed, ()))
