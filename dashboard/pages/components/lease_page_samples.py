"""Made-up pasts, renewals, candidates and holders for the components page."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from dashboard.charts.time_scale import Scale
from dashboard.forms.collision import Collision
from dashboard.pages.components.sample_leases import OTHER_POD, POD, PROCESS, sample_lease
from dashboard.pages.edit.dry_run_verdict import VerdictView, difference
from dashboard.pages.edit.what_happens import of_hand_over
from dashboard.pages.holders.holder_row import holder_rows
from dashboard.pages.lease.events_and_candidates import asked_view
from dashboard.pages.lease.past_terms import past_view
from dashboard.pages.lease.past_terms_query import LeasePast
from dashboard.pages.lease.renewals import renewals_view
from dashboard.parts.kept.cluster_questions import ClusterAnswers, NoAnswer
from dashboard.parts.kept.holdings import HolderSummary
from dashboard.parts.query.holder_filter import HolderFilter
from dashboard.parts.query.time_range import TimeRange
from leases.domain.changes.change import Change, ChangeType
from leases.domain.election.candidates import Candidate, CandidateSpec
from leases.domain.kind import Kind
from leases.domain.lease import Lease, ObjectMeta, ObjectName
from leases.domain.past.term_statistics import statistics
from leases.domain.past.terms import fold
from leases.domain.past.watched_times import UnwatchedTime
from leases.domain.phase import Phase
from leases.history.read.past_holders import EndedTerms
from leases.kube.evidence.holder_place import HolderPlace
from leases.kube.evidence.kube_objects import KubeEvent
from leases.tracking.renewal_intervals import LongestInterval

DAY = timedelta(hours=24)
KEY = ObjectName("kube-system", "kube-scheduler")


def lease_samples(cluster: str, now: datetime) -> dict[str, Any]:
    """The context of the partials of a Lease's page and of Holders."""
    held = sample_lease(Phase.HELD, now)
    steady = [(n, 2.0) for n in range(3, 360)]
    bumpy = [(n, {40: 9.5, 41: 5.1, 120: 16.0}.get(n, 2.0)) for n in range(3, 360)]
    hour = msgspec.structs.replace(held.lease.spec, lease_duration_seconds=3600)
    far = held.replace(lease=msgspec.structs.replace(held.lease, spec=hour))
    charts = [(held, bumpy), (far, steady[:50]), (held, [])]
    return {
        "pasts": [past_view(past, {}, now, zoom=lambda *_: "") for past in _pasts(now)],
        "renewal_charts": [
            renewals_view(one, tuple(_interval(*pair, now) for pair in reversed(pairs)), now)
            for one, pairs in charts
        ],
        "answers": [asked_view(asked, held.lease, now) for asked in _answers(now)],
        "holder_rows": _holder_rows(cluster, now),
        "named": {"name": cluster},
        "verdict": _verdict(held.lease),
        "happens": of_hand_over(held, POD, now),
        "conflict": {
            "collisions": (
                Collision("holder_identity", "holderIdentity", POD, held.holder or ""),
                Collision("duration_seconds", "leaseDurationSeconds", "30", "15"),
            ),
            "another_term": True,
            "writers": ["kubectl-edit wrote leaseDurationSeconds at 12:04:18."],
        },
    }


def _verdict(lease: Lease) -> VerdictView:
    """The verdict on an edit, with everything that a server may say."""
    before = msgspec.to_builtins(lease)
    spec = before["spec"] | {"holderIdentity": POD, "leaseDurationSeconds": 30}
    return VerdictView(
        diff=difference(before, before | {"spec": spec}),
        warnings=('unknown field "spec.colour"',),
        dropped=("spec.strategy: the server would silently drop OldestEmulationVersion.",),
    )


def _interval(slots_ago: int, seconds: float, now: datetime) -> LongestInterval:
    return LongestInterval(now - timedelta(seconds=10 * slots_ago), seconds)


def _pasts(now: datetime) -> list[LeasePast]:
    """One past with many changes, and one unknown."""

    def entry(change: ChangeType, hours_ago: float, **more: Any) -> Change:
        at = now - timedelta(hours=hours_ago)
        return Change(
            cluster="made-up", namespace=KEY.namespace, name=KEY.name, uid="u", kind=Kind.ELECTION,
            change=change, at=at, observed_at=at, **more,
        )  # fmt: skip

    life = fold(
        [
            entry(ChangeType.CREATED, 40, holder=POD),
            entry(ChangeType.RELEASED, 15, previous_holder=POD),
            entry(ChangeType.ACQUIRED, 14, holder=OTHER_POD, missed=2),
            entry(ChangeType.EXPIRED, 8, holder=OTHER_POD, renewed_at=now - timedelta(hours=8)),
            entry(ChangeType.RECOVERED, 7.9, holder=OTHER_POD),
            entry(ChangeType.EXPIRED, 3, holder=OTHER_POD, renewed_at=now - timedelta(hours=3)),
            entry(ChangeType.TAKEN_OVER, 2.5, holder=PROCESS, previous_holder=OTHER_POD),
            entry(ChangeType.RECONFIGURED, 1, holder=PROCESS, fields=("labels",)),
        ]
    )
    since = now - DAY
    lively = LeasePast(
        shown=TimeRange(since, now, now, live=True, follows=True),
        life=life,
        busy=(),
        changes=7,
        edits=[now - timedelta(hours=2.5)],
        blind=(UnwatchedTime(since=since, until=now - timedelta(hours=21), ended=None),),
        figures=statistics([life], since=since, until=now),
    )
    nothing = msgspec.structs.replace(
        lively, life=fold([]), edits=[], blind=(), changes=12345, figures=None
    )
    return [lively, nothing]


def _stands(
    name: str, versions: str, renewed: float, pinged: float | None, now: datetime
) -> Candidate:
    """A candidate that was renewed and pinged so many seconds ago."""
    binary, _, emulation = versions.partition(" ")
    spec = CandidateSpec(
        lease_name=KEY.name,
        binary_version=binary,
        emulation_version=emulation,
        strategy="OldestEmulationVersion",
        renew_time=now - timedelta(seconds=renewed),
        ping_time=None if pinged is None else now - timedelta(seconds=pinged),
    )
    return Candidate(ObjectMeta(name=name, creation_timestamp=now - DAY), spec)


def _answers(now: datetime) -> list[ClusterAnswers]:
    """Answers with everything, with nothing, and refused."""
    candidates = (
        _stands(PROCESS, "1.37.0 1.36.0", 60, 61, now),
        _stands("cp-2_5f0c", "1.36.0 1.36.0", 20, 2, now),
        _stands("cp-3_77e2", "1.37.0 1.35.0", 90, 60, now),
        _stands("cp-4_c3b9", "1.37.0 1.37.0", 7200, None, now),
        _stands("cp-5_0be4", "latest 1.36.0", 20, None, now),
    )
    event = KubeEvent(
        reason="LeaderElection",
        message=f"{PROCESS} became leader",
        last_timestamp=now - timedelta(hours=8),
        reporting_component="kube-scheduler",
    )
    warned = KubeEvent(reason="Late", message="made up", type="Warning", count=7, event_time=now)
    managed = {
        "manager": "kube-scheduler",
        "operation": "Update",
        "time": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "fieldsV1": {"f:spec": {"f:holderIdentity": {}, "f:renewTime": {}}},
    }
    refused = NoAnswer("We may not read Events here: grant list on events.", quiet=True)
    ill = NoAnswer("The cluster did not answer within 3 s.", quiet=False)
    return [
        ClusterAnswers(
            managed=[managed],
            events=(warned, event),
            candidates=candidates,
            place=HolderPlace("scheduler-0", "Running", "cp-1", node_ready=False),
        ),
        ClusterAnswers(managed=[], events=(), candidates=None),
        ClusterAnswers(managed=ill, events=refused, candidates=ill),
    ]


def _holder_rows(cluster: str, now: datetime) -> list[Any]:
    """Holders of many Leases, on a dead node, late, expired, and former."""
    phases = (Phase.HELD, Phase.HELD, Phase.LATE, Phase.EXPIRED)
    held, other, late, expired = (sample_lease(phase, now) for phase in phases)
    identities = {PROCESS: None, "cp-1_a4c123b1-612d-4d27-92d1-371c17149d43": None}
    ended = [EndedTerms("cp-3", KEY, Kind.ELECTION, 4)]
    holders = [
        HolderSummary(name="cp-1", identities=identities, holds=[held] * 12, ended=ended),
        HolderSummary(
            name="cp-2", identities={"cp-2": None}, holds=[other], ended=[], heartbeat=expired
        ),
        HolderSummary(name=POD, identities={POD: None}, holds=[late], ended=[]),
        HolderSummary(name=OTHER_POD, identities={OTHER_POD: None}, holds=[expired], ended=[]),
        HolderSummary(name="cp-3", identities={"cp-3": None}, holds=[], ended=ended),
    ]
    lives = {KEY: _pasts(now)[0].life}
    scale = Scale(now - DAY, now)
    wanted = HolderFilter()
    return list(holder_rows(cluster, holders, lives, wanted=wanted, held=15, scale=scale, now=now))
