"""All fields of a Lease with the meaning of each, and the Lease as lines of YAML."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from dashboard.parts.formatting import age, clock, day, seconds, when
from leases.domain.lease import Lease
from leases.domain.phase import Phase, explain
from leases.domain.steady_clock import EARLIEST, LATEST
from leases.tracking.tracked_lease import Tracked
from leases.wire.microtime import format_microtime, format_time

IN_STEP = 0.5  # seconds by which two clocks may differ before the page says so
AHEAD = 60.0  # a time more seconds in the future has no age
# What each field of LeaseSpec is for. Source: k8s.io/api/coordination/v1/types.go.
MEANS = {
    "holderIdentity": "Who holds it. Empty: nobody.",
    "acquireTime": "When this holder came, by its own clock.",
    "renewTime": "When it was renewed last, by the holder's clock.",
    "leaseDurationSeconds": "How long others wait after a renewal before they may take it.",
    "leaseTransitions": "How often the holder changed, as the holders count.",
    "preferredHolder": "Who is to hold it next: the present holder stops renewing.",
    "strategy": "How the API server elects the holder. Not set: holders elect themselves.",
}


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One field. With `since` (epoch s), `note` is an age that counts up."""

    label: str
    value: str | None = None
    note: str = ""
    since: float | None = None
    mono: bool = False
    copy: bool = False
    warns: bool = False
    means: str = ""
    absent: str = "not set"


def fact_groups(tracked: Tracked, now: datetime) -> list[tuple[str, Iterator[Fact]]]:
    return [
        ("", _spec(tracked, now)),
        ("What Leaseboard knows", _observed(tracked, now)),
        ("Metadata", _metadata(tracked, now)),
    ]


def _time(label: str, moment: datetime | None, now: datetime, note: str = "") -> Fact:
    means = MEANS.get(label, "")
    if moment is None:
        return Fact(label=label, means=means)
    value = when(moment, now, fine=True)
    note = note or _beyond(moment, now)
    if note:
        return Fact(label=label, value=value, note=note, means=means)
    ago = age((now - moment).total_seconds())
    return Fact(label=label, value=value, note=ago, since=moment.timestamp(), means=means)


def _beyond(moment: datetime, now: datetime) -> str:
    """The note of a time that has no age, or ""."""
    if moment == EARLIEST:
        return "or earlier: the calendar begins there"
    if moment == LATEST:
        return "or later: the calendar ends there"
    ahead = (moment - now).total_seconds()
    return f"{age(ahead)} ahead of our clock" if ahead > AHEAD else ""


def _text(
    label: str, value: object, note: str = "", *, mono: bool = False, absent: str = "not set"
) -> Fact:
    shown = None if value in (None, "") else str(value)
    means = MEANS.get(label, "")
    return Fact(label=label, value=shown, note=note, mono=mono, means=means, absent=absent)


def _spec(tracked: Tracked, now: datetime) -> Iterator[Fact]:
    """All seven fields of LeaseSpec."""
    spec = tracked.lease.spec
    identity = spec.holder_identity
    yield msgspec.structs.replace(_text("holderIdentity", identity, mono=True), copy=bool(identity))
    yield _time("acquireTime", spec.acquire_time, now)
    yield _time("renewTime", spec.renew_time, now)
    yield _text("leaseDurationSeconds", spec.lease_duration_seconds)
    yield _text("leaseTransitions", spec.lease_transitions)
    yield _text("preferredHolder", spec.preferred_holder, mono=True)
    yield _text("strategy", spec.strategy)


def _observed(tracked: Tracked, now: datetime) -> Iterator[Fact]:
    yield _text("Kind", tracked.kind.value, tracked.kind_reason)
    guess = "estimated from renewTime until a renewal is seen" if tracked.estimated else ""
    if tracked.renew_time is None:  # what was observed is that it was taken or given back
        yield _text("Last renewal seen", None, absent="none seen")
    else:
        yield _time("Last renewal seen", tracked.renewed_at, now, guess)
    if tracked.renewed_at != tracked.observed_at:
        edit = "an edit of leaseDurationSeconds, and no renewal"
        yield _time("Lasts from", tracked.observed_at, now, edit)
    if by := tracked.lasting.may_be_vacant:
        yield _text("May be vacant", "yes", f"said by {by}")
    cadence = tracked.cadence_seconds
    seen = f"learned from {tracked.renewals_seen:,} renewals"
    yield _text(
        "Renewed every", seconds(cadence) if cadence else None, seen, absent="not learned yet"
    )
    if skew := _skew(tracked, now):
        yield skew


def _skew(tracked: Tracked, now: datetime) -> Fact | None:
    """The holder's clock compared with ours; a warning if they judge the Lease differently."""
    skew = tracked.skew_seconds
    if skew is None:
        return None
    said = explain(tracked, now)
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
    yield _text("Labels", _pairs(meta.labels), mono=True, absent="none")
    yield _text("Annotations", _pairs(meta.annotations), mono=True, absent="none")
    owners = "\n".join(f"{owner.kind} {owner.name}" for owner in meta.owner_references or ())
    yield _text("ownerReferences", owners, mono=True, absent="none")


def _pairs(pairs: dict[str, str] | None) -> str:
    return "\n".join(f"{key}={value}" for key, value in sorted((pairs or {}).items()))


# Text that YAML needs no quotes for: no special sign, number, date or keyword.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


class YamlLine(msgspec.Struct, frozen=True):
    """`indent` ends in a list's dash where there is one; the value is quoted or not."""

    indent: str
    key: str
    value: str
    quoted: bool

    @property
    def text(self) -> str:
        return f"{self.indent}{self.key}:{' ' if self.value else ''}{self.value}"


def yaml_lines(lease: Lease) -> tuple[YamlLine, ...]:
    """The Lease in the order kubectl prints it, cut to what Leaseboard reads."""
    return tuple(_lines(_document(lease), ""))


def _document(lease: Lease) -> dict[str, Any]:
    meta, spec = lease.metadata, lease.spec
    metadata: dict[str, Any] = {
        "annotations": meta.annotations,
        "creationTimestamp": meta.creation_timestamp and format_time(meta.creation_timestamp),
        "labels": meta.labels,
        "name": meta.name,
        "namespace": meta.namespace,
        "ownerReferences": [
            {"kind": owner.kind, "name": owner.name} for owner in meta.owner_references or ()
        ],
        "resourceVersion": meta.resource_version,
        "uid": meta.uid,
    }
    fields: dict[str, Any] = {
        "acquireTime": spec.acquire_time and format_microtime(spec.acquire_time),
        "holderIdentity": spec.holder_identity,
        "leaseDurationSeconds": spec.lease_duration_seconds,
        "leaseTransitions": spec.lease_transitions,
        "preferredHolder": spec.preferred_holder,
        "renewTime": spec.renew_time and format_microtime(spec.renew_time),
        "strategy": spec.strategy,
    }
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {k: v for k, v in metadata.items() if v not in (None, {}, [])},
        "spec": {k: v for k, v in fields.items() if v is not None},
    }


def _lines(mapping: Mapping[str, Any], indent: str) -> Iterator[YamlLine]:
    for name, value in mapping.items():
        key = name if _PLAIN.fullmatch(name) else json.dumps(name)
        if isinstance(value, Mapping):
            yield YamlLine(indent, key, "" if value else "{}", False)
            yield from _lines(value, indent + "  ")
        elif isinstance(value, list):
            yield YamlLine(indent, key, "", False)
            for item in value:
                yield from _item(item, indent)
        else:
            text, quoted = _scalar(value)
            yield YamlLine(indent, key, text, quoted)


def _item(item: Mapping[str, Any], indent: str) -> Iterator[YamlLine]:
    for number, line in enumerate(_lines(item, indent + "  ")):
        yield msgspec.structs.replace(line, indent=f"{indent}- ") if number == 0 else line


def _scalar(value: Any) -> tuple[str, bool]:
    if isinstance(value, str) and not (_PLAIN.fullmatch(value) and value.lower() not in _WORDS):
        return json.dumps(value, ensure_ascii=False), True
    return str(value), False
