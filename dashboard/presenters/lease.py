"""Everything about one Lease: its head, its numbers in words, all its fields."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec
from django.urls import reverse

from dashboard.presenters.row import RowView, row_view
from dashboard.presenters.words import age, clock, day, seconds, when
from dashboard.presenters.yaml import YamlLine, yaml_lines
from leases.domain.phase import Explanation, Phase, explain
from leases.tracking.tracked import Tracked

IN_STEP = 0.5  # seconds by which two clocks may differ before we say so


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One field. `value` None is a field that is not set; `since` (epoch s) makes `note` an age
    that counts up.
    """

    label: str
    value: str | None = None
    note: str = ""
    since: float | None = None
    mono: bool = False
    copy: bool = False
    warns: bool = False


class FactGroup(msgspec.Struct, frozen=True):
    title: str
    facts: tuple[Fact, ...]


class LeaseView(msgspec.Struct, frozen=True, kw_only=True):
    """`explanation` says in numbers, as of the time of day `explained_at`, why the Lease is in its
    phase.
    """

    row: RowView
    edit_url: str
    explanation: str
    explained_at: str
    every: str
    expired_for: str
    expired_since: float | None


class LeaseDetail(msgspec.Struct, frozen=True):
    """What the page shows below the head."""

    groups: tuple[FactGroup, ...]
    yaml: tuple[YamlLine, ...]


def lease_view(cluster: str, tracked: Tracked, now: datetime) -> LeaseView:
    """The head of the page as of now."""
    meta = tracked.lease.metadata
    expired = tracked.phase is Phase.EXPIRED
    return LeaseView(
        row=row_view(cluster, tracked, now),
        edit_url=reverse("lease_edit", args=[cluster, meta.namespace, meta.name]),
        explanation=_explain(tracked, now).text,
        explained_at=clock(now),
        every=seconds(tracked.cadence_seconds) if tracked.cadence_seconds else "",
        expired_for=age((now - tracked.phase_since).total_seconds()) if expired else "",
        expired_since=tracked.phase_since.timestamp() if expired else None,
    )


def _explain(tracked: Tracked, now: datetime) -> Explanation:
    return explain(
        tracked.lease,
        observed_at=tracked.observed_at,
        cadence_seconds=tracked.cadence_seconds,
        renewals_seen=tracked.renewals_seen,
        kind=tracked.kind,
        now=now,
        named=tracked.named,
    )


def lease_detail(tracked: Tracked, now: datetime) -> LeaseDetail:
    """All fields as of now."""
    return LeaseDetail(
        groups=(
            FactGroup("", tuple(_spec(tracked, now))),
            FactGroup("What Leaseboard knows", tuple(_observed(tracked, now))),
            FactGroup("Metadata", tuple(_metadata(tracked, now))),
        ),
        yaml=yaml_lines(tracked.lease),
    )


def _time(label: str, moment: datetime | None, now: datetime, note: str = "") -> Fact:
    if moment is None:
        return Fact(label=label)
    if note:
        return Fact(label=label, value=when(moment, now, fine=True), note=note)
    ago = age((now - moment).total_seconds())
    value = when(moment, now, fine=True)
    return Fact(label=label, value=value, note=ago, since=moment.timestamp())


def _text(label: str, value: object, note: str = "", *, mono: bool = False) -> Fact:
    return Fact(
        label=label, value=None if value in (None, "") else str(value), note=note, mono=mono
    )


def _spec(tracked: Tracked, now: datetime) -> Iterator[Fact]:
    """All seven fields of LeaseSpec."""
    spec = tracked.lease.spec
    identity = spec.holder_identity
    yield Fact(label="holderIdentity", value=identity or None, mono=True, copy=bool(identity))
    yield _time("acquireTime", spec.acquire_time, now)
    yield _time("renewTime", spec.renew_time, now, "by the holder's clock")
    yield _text("leaseDurationSeconds", spec.lease_duration_seconds)
    yield _text("leaseTransitions", spec.lease_transitions)
    yield _text("preferredHolder", spec.preferred_holder, mono=True)
    yield _text("strategy", spec.strategy)


def _observed(tracked: Tracked, now: datetime) -> Iterator[Fact]:
    yield _text("Kind", tracked.kind.value, tracked.kind_reason)
    guess = "estimated from renewTime until a renewal is seen" if tracked.estimated else ""
    yield _time("Last renewal seen", tracked.observed_at, now, guess)
    cadence = tracked.cadence_seconds
    seen = f"learned from {tracked.renewals_seen:,} renewals"
    yield _text("Renewed every", seconds(cadence) if cadence else None, seen)
    if skew := _skew(tracked, now):
        yield skew


def _skew(tracked: Tracked, now: datetime) -> Fact | None:
    """The holder's clock against ours; warns where the two judge the Lease differently."""
    skew = tracked.skew_seconds
    if skew is None:
        return None
    said = _explain(tracked, now)
    note = ""
    if said.wall_clock_expired is not None and said.wall_clock_expired != (
        said.phase is Phase.EXPIRED
    ):
        word = "has expired" if said.wall_clock_expired else "has not expired"
        note = f"who goes by renewTime thinks this Lease {word}"
    direction = "behind" if skew >= 0 else "ahead of"
    value = f"{abs(skew):.1f} s {direction} ours" if abs(skew) >= IN_STEP else "in step with ours"
    return Fact(label="Holder's clock", value=value, note=note, warns=bool(note))


def _metadata(tracked: Tracked, now: datetime) -> Iterator[Fact]:
    meta = tracked.lease.metadata
    created = meta.creation_timestamp
    if created is not None:
        ago = age((now - created).total_seconds())
        value = f"{day(created)} {clock(created)}"
        yield Fact(label="Created", value=value, note=ago, since=created.timestamp())
    yield _text("resourceVersion", meta.resource_version, mono=True)
    yield _text("uid", meta.uid, mono=True)
    yield _text("Labels", _pairs(meta.labels), mono=True)
    yield _text("Annotations", _pairs(meta.annotations), mono=True)
    owners = ", ".join(f"{owner.kind} {owner.name}" for owner in meta.owner_references or ())
    if owners:
        yield _text("Owned by", owners, mono=True)


def _pairs(pairs: dict[str, str] | None) -> str:
    return "\n".join(f"{key}={value}" for key, value in sorted((pairs or {}).items()))
