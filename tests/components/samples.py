"""Every partial in every state on one page, with made-up Leases, to compare styles."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import check_view
from dashboard.board import running_board
from dashboard.charts.bars import hours_chart, sparkline
from dashboard.charts.histograms import ages_chart
from dashboard.charts.time_axis import Scale
from dashboard.forms.fields import Collision
from dashboard.forms.form_page import VerdictView, difference
from dashboard.forms.what_happens import of_hand_over
from dashboard.pages.fleet import CellView, StripFigure, StripView, Trouble
from dashboard.pages.holders.list import holder_rows
from dashboard.pages.incidents.evidence import evidence_lines, without_notes
from dashboard.pages.incidents.near_misses import NearMiss, near_miss_line
from dashboard.pages.lease.events_and_candidates import asked_view
from dashboard.pages.lease.fields import fact_groups, yaml_lines
from dashboard.pages.lease.past_terms import LeasePast, past_view, renewals_view
from dashboard.parts.attention import attention
from dashboard.parts.cause_words import CAUSE_MEANINGS, SOURCE_WORDS
from dashboard.parts.change_sentence import change_line
from dashboard.parts.cluster_questions import ClusterAnswers, NoAnswer
from dashboard.parts.holdings import HolderFilter, HolderSummary, PodsRead
from dashboard.parts.incident_line import incident_line
from dashboard.parts.key_figures import Calm
from dashboard.parts.lease_head import lease_view
from dashboard.parts.lease_row import row_view, wall_tile
from dashboard.parts.names import HUES, HolderView
from dashboard.parts.node_summary import GroupLine, Join, NodesView, beat_view
from dashboard.parts.time_range import TimeRange
from leases.domain.cause.facts import NodeFact, PodFact, Question, RefusedSource
from leases.domain.change import Change, ChangeType
from leases.domain.election import Candidate, CandidateSpec
from leases.domain.figures import DEFAULT_ABANDONED_AFTER, Totals, statistics, totals_in
from leases.domain.flapping import Flapping
from leases.domain.incident import Cause, Confidence, Evidence, Incident, Source
from leases.domain.kind import Kind
from leases.domain.lease import Lease, LeaseSpec, ObjectMeta, ObjectName
from leases.domain.phase import EMPTY, Phase, with_sample
from leases.domain.terms import fold
from leases.domain.watched_times import Connection, ConnectionState, UnwatchedTime
from leases.history.lease_figures import Stretch
from leases.history.states_as_of import EndedTerms
from leases.kube.cluster_source import ClusterSource, SourceKind
from leases.kube.holder_pods import HolderPlace, Reading
from leases.kube.kube_objects import KubeEvent
from leases.tracking.renewals import LongestInterval
from leases.tracking.tracked_lease import Lasting, Tracked

POD = "ingress-nginx-controller-59d4c9cf7d-l4xvb"
OTHER_POD = "ingress-nginx-controller-59d4c9cf7d-9tqqs"
EMBEDDED = ClusterSource(SourceKind.EMBEDDED)
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


HOURS = (1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 3, 2, 1, 9, 4, 2, 0, 1, 0, 1, 3, 11)
HEARTBEAT_AGES = {(n, Phase.HELD): 11_000 for n in range(10)} | {
    (24, Phase.LATE): 14,
    (59, Phase.EXPIRED): 3,
}


def board_samples(cluster: str, now: datetime) -> dict[str, Any]:
    """The context of the partials of Overview and Nodes."""
    quiet = _nodes(cluster, now)
    beats = [
        beat_view(cluster, sample_lease(phase, now), now) for phase in (Phase.EXPIRED, Phase.LATE)
    ]
    join = Join("Nodes as of 12:03:11.", True, tuple(beats[1:]), 1, tuple(beats[:1]), 1)
    unread = Join("Leaseboard may not list Nodes here: no zones, no readiness.", known=False)
    troubled = msgspec.structs.replace(quiet, worst=tuple(beats), bad=17, join=join)
    changes = hours_chart(HOURS, now, what="Changes of holder")
    away = Connection(state=ConnectionState.STALE, since=now, detail="The cluster does not answer.")
    return {
        "overview": SimpleNamespace(cluster=cluster, hours=changes),
        "ages": ages_chart(HEARTBEAT_AGES, 40.0, of="heartbeats"),
        "node_views": [
            troubled,
            msgspec.structs.replace(quiet, join=Join("Nodes as of 12:03:11.", known=True)),
            msgspec.structs.replace(
                quiet, calm=Calm("Not connected", away.detail, "i-unplug"), join=unread
            ),
        ],
        "group_lines": [
            GroupLine("eu-central-1b", 43_333, 2, 3),
            GroupLine("eu-central-1a", 43_333, 5, 0),
            GroupLine("", 12, 0, 0),
        ],
    }


def _nodes(cluster: str, now: datetime) -> NodesView:
    return NodesView(
        cluster=cluster,
        connection=Connection(state=ConnectionState.LIVE, since=now),
        known=True,
        counts=(("held", 129_983), ("late", 14), ("expired", 3)),
        total=130_000,
        counted_in="24 h",
        joined=312,
        left=298,
        worst=(),
        bad=0,
        finding="130,000 heartbeats: 130,000 held, 0 late, 0 expired.",
        calm=Calm(
            "Every heartbeat is in time", "130,000 heartbeats in time.", "st-held", "is-held"
        ),
        join=Join("", known=True),
    )


def fleet_samples(now: datetime) -> dict[str, Any]:
    """The context of the partials of all clusters: a strip and a cell of each trouble."""
    words = (
        (Trouble.INCIDENT, "expired", "worker-7's heartbeat stopped at 12:00:00", "2 incidents"),
        (Trouble.NOT_LIVE, "expired", "Shows what was known at 11:58:02.", "stale since 11:58:02"),
        (
            Trouble.LEASES,
            "vacant",
            "1 vacant election, 2 late; no incident goes on.",
            "1 vacant election, 2 late",
        ),
        (Trouble.NONE, "held", "No Lease is in trouble.", "1,312 Leases"),
    )
    phases = [StripFigure(f"{len(phase)}", phase.value.capitalize(), "#") for phase in Phase]
    cells = [
        CellView(
            name=f"prod-{trouble.value.replace('_', '-')}",
            url="#",
            rank=rank,
            live=trouble is not Trouble.NOT_LIVE,
            css=css,
            sentence=sentence,
            short=short,
            note="Node down, likely; since 12:00:12" if trouble is Trouble.INCIDENT else "",
        )
        for rank, (trouble, css, sentence, short) in enumerate(words)
    ]
    unheld = StripFigure("1 m 12 s", "Without holder, 24 h; elections, summed", "#", "", "long")
    strips = [
        StripView(
            cell=cell,
            shape="held" if cell.live else "expired",
            connection="live since" if cell.live else "stale since",
            since=f"{now:%H:%M:%S}",
            version="v1.34.1" if cell.live else "",
            labels="env=prod, region=eu-central-1" if cell.live else "",
            figures=(StripFigure("2", "Incidents", "#", "", "bad is-expired"), *phases, unheld),
            changes=StripFigure("58", "Holder changes, 24 h", "#", "of elections"),
            spark=sparkline(HOURS),
        )
        for cell in cells
    ]
    return {"fleet_cells": cells, "fleet_strips": strips}


KEY = ObjectName("kube-system", "kube-scheduler")
GOING_ON = (Cause.NODE_DOWN, Cause.SCALED_DOWN, Cause.FLAPPING)


def incident_samples(cluster: str, now: datetime) -> dict[str, Any]:
    """The context of the partials of the incidents: a row of each cause."""
    confidences = cycle(Confidence)
    found = [_incident(cluster, cause, next(confidences), now) for cause in Cause]
    intervals = [
        LongestInterval(now - timedelta(minutes=minute), 13.2 if minute == 20 else 2.0 + minute % 3)
        for minute in range(59, 0, -2)
    ]
    miss = NearMiss(
        key=KEY, holder="cp-1", at=intervals[0].since, seconds=13.2, duration=15, cadence=2.0,
        times=1, intervals=tuple(intervals),
    )  # fmt: skip
    return {
        "incident_lines": [incident_line(one, now) for one in found],
        "evidence": evidence_lines(found[0], ()),
        "sources": len(SOURCE_WORDS),
        "without": without_notes(found[0]),
        "misses": [near_miss_line(cluster, miss, now)],
    }


def _incident(cluster: str, cause: Cause, confidence: Confidence, now: datetime) -> Incident:
    began = now - timedelta(minutes=5)
    return Incident(
        id=cause.value,
        cluster=cluster,
        cause=cause,
        confidence=confidence,
        sentence=f"{CAUSE_MEANINGS[cause]} {KEY.name} was without a holder for 16.0 s.",
        began=began,
        ended=None if cause in GOING_ON else now,
        leases=(KEY,),
        hosts=("cp-1",),
        worst_gap_seconds=16.0,
        evidence=tuple(
            Evidence(f"cp-1 held {KEY} until {began:%H:%M:%S}", source) for source in Source
        ),
        without=tuple(Source),
    )


DAY = timedelta(hours=24)


def lease_samples(cluster: str, now: datetime) -> dict[str, Any]:
    """The context of the partials of a Lease's page and of Holders."""
    held = sample_lease(Phase.HELD, now)
    steady = [(n, 2.0) for n in range(3, 360)]
    bumpy = [(n, {40: 9.5, 41: 5.1, 120: 16.0}.get(n, 2.0)) for n in range(3, 360)]
    hour = msgspec.structs.replace(held.lease.spec, lease_duration_seconds=3600)
    far = held.replace(lease=msgspec.structs.replace(held.lease, spec=hour))
    charts = [(held, bumpy), (far, steady[:50]), (held, [])]
    return {
        "pasts": [past_view(KEY, past, {}, now, zoom=lambda *_: "") for past in _pasts(now)],
        "renewal_charts": [
            renewals_view(one, tuple(_interval(*pair, now) for pair in reversed(pairs)), now)
            for one, pairs in charts
        ],
        "answers": [asked_view(asked, held.lease, EMBEDDED, now) for asked in _answers(now)],
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
        blind_terms=((since, now - timedelta(hours=21)),),
        statistics=statistics(life, since=since, until=now),
        totals=totals_in(life, Kind.ELECTION, since=since, until=now),
        unseen=0.0,
        present=None,
        stretch=Stretch(
            cluster="prod",
            since=since,
            until=now,
            blind=((since, now - timedelta(hours=21)),),
            marks={},
            abandoned_after=DEFAULT_ABANDONED_AFTER,
        ),
    )
    nothing = msgspec.structs.replace(
        lively,
        life=fold([]),
        edits=[],
        blind=(),
        blind_terms=(),
        changes=12345,
        statistics=None,
        totals=Totals(),
        unseen=0.0,
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
            place=_place(now),
        ),
        ClusterAnswers(managed=[], events=(), candidates=None),
        ClusterAnswers(managed=ill, events=refused, candidates=ill),
    ]


def _place(now: datetime) -> HolderPlace:
    """A Pod that crashes on a node that is not ready; its Events may not be read."""
    key = ObjectName("kube-system", "scheduler-0")
    pod = PodFact(
        key=key, read_at=now, node="cp-1", phase="Running", restarts=4, exit_reason="OOMKilled",
        exit_code=137, exited_at=now, ran_from=now - timedelta(hours=2), container="main",
        ran_before=True, waiting="CrashLoopBackOff",
    )  # fmt: skip
    node = NodeFact(name="cp-1", read_at=now, ready="Unknown", ready_since=now)
    refused = RefusedSource(Source.EVENTS, now, "events is forbidden", "kube-system")
    question = Question(Source.EVENTS, key, "Pod")
    return HolderPlace(pod=pod, node=node, unread=((question, Reading(now, (refused,))),))


def _holder_rows(cluster: str, now: datetime) -> list[Any]:
    """Holders of many Leases, on a dead node, late, expired, and former."""
    phases = (Phase.HELD, Phase.HELD, Phase.LATE, Phase.EXPIRED)
    held, other, late, expired = (sample_lease(phase, now) for phase in phases)
    identities = {PROCESS: None, "cp-1_a4c123b1-612d-4d27-92d1-371c17149d43": None}
    ended = [EndedTerms("cp-3", KEY, Kind.ELECTION, 4)]
    holders = [
        HolderSummary(name="cp-1", identities=identities, named_by=[held] * 12, ended=ended),
        HolderSummary(
            name="cp-2",
            identities={"cp-2": None},
            named_by=[other],
            ended=[],
            heartbeat=expired,
            pods_named_by=[late],
        ),
        HolderSummary(name=POD, identities={POD: None}, named_by=[late], ended=[]),
        HolderSummary(name=OTHER_POD, identities={OTHER_POD: None}, named_by=[expired], ended=[]),
        HolderSummary(name="cp-3", identities={"cp-3": None}, named_by=[], ended=ended),
    ]
    lives = {KEY: _pasts(now)[0].life}
    scale = Scale(now - DAY, now)
    wanted = HolderFilter()
    return list(
        holder_rows(
            cluster,
            holders,
            lives,
            wanted=wanted,
            held=15,
            scale=scale,
            now=now,
            pods=PodsRead(holders=3, read=2),
        )
    )


MEANINGS = {
    "held": ("Filled disc", "Renewed within its usual interval."),
    "late": ("Half-filled disc", "Past the usual interval, not expired."),
    "expired": ("Triangle", "Its duration has passed since we saw the last renewal."),
    "vacant": ("Dashed ring", "No holder: released, or never acquired."),
    "untimed": ("Square with a dash", "Held, but without a duration: it cannot expire."),
    "deleted": ("Cross", "The object is gone. In History, and where it stood."),
}


@require_safe
def components(request: HttpRequest) -> HttpResponseBase:
    """States, rows, heads, lanes, sentences, notes and empty places."""
    refusal = check_view(request)
    if refusal is not None:
        return refusal
    now = clock.now()
    cluster = next(iter(running_board().clusters))
    leases = sample_leases(now)
    changes, flapping = sample_changes(cluster, now), sample_flapping(now)
    flapper = sample_lease(Phase.HELD, now, "flapping")
    states = [*((lease, None) for lease in leases), (flapper, flapping)]
    context = {
        "meanings": [(phase, *words) for phase, words in MEANINGS.items()],
        "holders": [HolderView("", f"holder {hue}", "", "", hue) for hue in range(1, HUES + 1)],
        "rows": [row_view(cluster, lease, now, hours=HOURS, flapping=how) for lease, how in states],
        "heads": [lease_view(cluster, lease, now, flapping=how) for lease, how in states],
        "tiles": [wall_tile(cluster, lease, now, flapping=how) for lease, how in states],
        "attention": attention(
            cluster, leases, now=now, flapping=[(flapper, flapping)], missed=changes[-1:]
        ),
        "lines": [change_line(change, now) for change in changes],
        "groups": fact_groups(sample_lease(Phase.HELD, now), now),
        "yaml": yaml_lines(leases[0].lease),
        **lease_samples(cluster, now),
        **board_samples(cluster, now),
        **incident_samples(cluster, now),
        **fleet_samples(now),
    }
    return render(request, "components/index.html", context)
