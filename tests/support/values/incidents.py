"""Incidents for the tests, with the changes that belong to them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from leases.domain.change import Change, ChangeType
from leases.domain.incident import Cause, Confidence, Evidence, Incident, Member, Source
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from tests.support.values.changes import T0, a_change

SCHEDULER, KEDA = ObjectName("kube-system", "scheduler"), ObjectName("keda", "operator.keda.sh")
BEAT = ObjectName("kube-node-lease", "worker-7")


def an_incident(**given: Any) -> Incident:
    """A node that stopped at T0, with two elections; over after 41 s."""
    values: dict[str, Any] = {
        "id": "first",
        "cluster": "a",
        "cause": Cause.NODE_DOWN,
        "confidence": Confidence.LIKELY,
        "sentence": "worker-7's heartbeat stopped at 12:00:00; 2 elections ran out within 12 s",
        "began": T0,
        "ended": T0 + timedelta(seconds=41),
        "leases": (BEAT, KEDA, SCHEDULER),
        "hosts": ("worker-7", "keda-1"),
        "worst_gap_seconds": 16.0,
        "evidence": (
            Evidence("worker-7 renewed for the last time at 12:00:05.5", Source.LEASES),
            Evidence("keda/operator.keda.sh ran out; it was held by keda-1", Source.PODS),
        ),
        "without": (Source.EVENTS,),
        "settled": True,
    }
    return Incident(**(values | given))


def open_incident(
    *keys: ObjectName, held_since: Iterable[ObjectName] = (), **given: Any
) -> Incident:
    """One of these Leases that began just now and goes on; somebody has held some of them since."""
    words = [(key, "expired 1") for key in keys] + [(key, "term 2") for key in held_since]
    values: dict[str, Any] = {
        "members": tuple(Member(key, f"uid {word} 0") for key, word in words),
        "id": "5e1f",
        "began": datetime.now(UTC),
        "ended": None,
        "leases": keys,
        "hosts": (),
        "sentence": "worker-7's heartbeat stopped at 03:12:31; 3 elections ran out within 12 s",
    }
    return an_incident(**(values | given))


def a_story() -> tuple[Change, ...]:
    """The changes of `an_incident`, oldest first."""
    expired, taken = ChangeType.EXPIRED, ChangeType.TAKEN_OVER
    beat = {"namespace": BEAT.namespace, "name": BEAT.name, "kind": Kind.HEARTBEAT}
    keda = {"namespace": KEDA.namespace, "name": KEDA.name}
    return (
        a_change(10, change=expired, holder="keda-1", previous_holder="keda-1",
                 gap_seconds=None, **keda),
        a_change(12, change=taken, holder="keda-2", previous_holder="keda-1", gap_seconds=2.0,
                 **keda),
        a_change(15, change=expired, holder="cp-1", previous_holder="cp-1", gap_seconds=None),
        a_change(31, change=taken, holder="cp-2", previous_holder="cp-1", gap_seconds=16.0),
        a_change(40, change=expired, holder="worker-7", previous_holder="worker-7",
                 gap_seconds=None, **beat),
    )  # fmt: skip
