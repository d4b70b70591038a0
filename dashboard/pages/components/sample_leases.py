"""Made-up Leases and changes in every state, for the components page."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from leases.domain.cadence import EMPTY, with_sample
from leases.domain.changes.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import Lease, LeaseSpec, ObjectMeta
from leases.domain.past.flapping import Flapping
from leases.domain.phase import Phase
from leases.tracking.tracked_lease import Lasting, Tracked

POD = "ingress-nginx-controller-59d4c9cf7d-l4xvb"
OTHER_POD = "ingress-nginx-controller-59d4c9cf7d-9tqqs"
PROCESS = "cp-1_8c2e41f0-5b1d-4f0e-9a57-2d9a3c1b7e44"
# Seconds since the renewal, of a Lease of 15 s that is renewed every 2 s.
AGES = {Phase.HELD: 1.2, Phase.LATE: 9.1, Phase.EXPIRED: 44.0, Phase.VACANT: 44.0}


def sample_leases(now: datetime) -> list[Tracked]:
    return [sample_lease(phase, now) for phase in Phase]


def sample_lease(phase: Phase, now: datetime, word: str = "") -> Tracked:
    seen = now - timedelta(seconds=AGES.get(phase, 3600.0))
    untimed, vacant = phase is Phase.UNTIMED, phase is Phase.VACANT
    since = now - timedelta(hours=8, minutes=51)
    lease = Lease(
        ObjectMeta(
            name=f"{word or phase}-example",
            namespace="kube-system",
            uid="5e0c2f6a-91d4-4f7e-8d20-3b6a7c19e4f5",
            resource_version="2841190734",
            creation_timestamp=now - timedelta(days=289),
        ),
        LeaseSpec(
            holder_identity=None if vacant else PROCESS if phase is Phase.HELD else POD,
            lease_duration_seconds=None if untimed else 15,
            acquire_time=since,
            renew_time=None if untimed else seen,
            lease_transitions=214,
        ),
    )
    lasting = Lasting(
        key=lease.key,
        lease=lease,
        kind=Kind.LOCK if untimed else Kind.ELECTION,
        kind_reason="made up",
        phase=phase,
        phase_since=seen + timedelta(seconds=15) if phase is Phase.EXPIRED else seen,
        held_since=None if vacant else since,
        named=True,
    )
    return Tracked(
        lasting,
        lease.spec.renew_time,
        seen,
        estimated=False,
        renewals_seen=9,
        intervals=EMPTY if untimed else with_sample(EMPTY, 2.0),
    )


def sample_flapping(now: datetime) -> Flapping:
    within = timedelta(minutes=30)
    return Flapping(
        58, now - timedelta(minutes=29), holders=3, hosts=3, gap_seconds=312.0, within=within
    )


def sample_changes(cluster: str, now: datetime) -> list[Change]:
    """One change of every type, and one that was inferred after some were missed."""
    plain = [_change(cluster, change, now) for change in ChangeType]
    since = now - timedelta(minutes=5)
    inferred = _change(cluster, ChangeType.TAKEN_OVER, now)
    return [
        *plain,
        msgspec.structs.replace(inferred, inferred=True, inferred_since=since, missed=2),
    ]


def _change(cluster: str, change: ChangeType, now: datetime) -> Change:
    nobody = change in (ChangeType.RELEASED, ChangeType.DELETED)
    before = change in (ChangeType.TAKEN_OVER, ChangeType.REPLACED) or nobody
    gap = change in (ChangeType.TAKEN_OVER, ChangeType.ACQUIRED, ChangeType.RECOVERED)
    return Change(
        cluster=cluster,
        namespace="kube-system",
        name="kube-scheduler",
        uid="5e0c2f6a",
        kind=Kind.ELECTION,
        change=change,
        at=now - timedelta(seconds=12),
        observed_at=now,
        holder=None if nobody else PROCESS,
        previous_holder=OTHER_POD if before else None,
        gap_seconds=12.4 if gap else None,
        fields=("leaseDurationSeconds", "labels") if change is ChangeType.RECONFIGURED else (),
    )
