"""A change as a sentence in parts, which the template marks up: no HTML is made from data."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from dashboard.parts.formatting import age, counted, listed, when
from dashboard.parts.holder_name import HolderView, holder_view
from dashboard.parts.lease.row import lease_url
from leases.domain.changes.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.severity import LONG_GAP_SECONDS


class Part(msgspec.Struct, frozen=True):
    """A piece of a sentence; `mark` is "" (plain), "name", "holder" or "bad"."""

    text: str
    mark: str = ""


class ChangeLine(msgspec.Struct, frozen=True, kw_only=True):
    """`window` says when an inferred change may have happened; `icon` is a symbol of the sprite."""

    change: Change
    url: str
    word: str
    phase: str
    icon: str
    moment: str
    day: str  # "" for today
    parts: tuple[Part, ...]
    holder: HolderView | None
    from_to: bool  # the holder changed, from `previous` to `next`
    previous: HolderView | None
    next: HolderView | None
    gap: str
    gap_is_long: bool
    window: str

    @property
    def key(self) -> str:
        return f"{self.change.namespace}/{self.change.name}"

    @property
    def sentence(self) -> str:
        return "".join(part.text for part in self.parts)


WORDS = {change: change.value.replace("_", " ").capitalize() for change in ChangeType}
_PHASES = {
    ChangeType.EXPIRED: "expired",
    ChangeType.RELEASED: "vacant",
    ChangeType.DELETED: "deleted",
    ChangeType.RECOVERED: "held",
    ChangeType.REPLACED: "late",
}
_ICONS = {
    ChangeType.CREATED: "i-plus",
    ChangeType.ACQUIRED: "i-key",
    ChangeType.RELEASED: "st-vacant",
    ChangeType.TAKEN_OVER: "i-swap",
    ChangeType.REPLACED: "i-swap",
    ChangeType.EXPIRED: "st-expired",
    ChangeType.RECOVERED: "st-held",
    ChangeType.RESTARTED: "i-restart",
    ChangeType.RECONFIGURED: "i-edit",
    ChangeType.DELETED: "st-deleted",
}
_KEEPS_HOLDER = (ChangeType.RECONFIGURED, ChangeType.RECOVERED, ChangeType.RESTARTED)
_TO_NOBODY = (ChangeType.EXPIRED, ChangeType.RELEASED, ChangeType.DELETED)


def change_line(change: Change, now: datetime) -> ChangeLine:
    """Present a change; `now` decides whether its date is shown."""
    gap = change.gap_seconds
    to_nobody = change.change in _TO_NOBODY
    last = change.previous_holder or (change.holder if to_nobody else None)
    return ChangeLine(
        change=change,
        url=lease_url(change.cluster, change.namespace, change.name),
        word=WORDS[change.change],
        phase=_PHASES.get(change.change, ""),
        icon=_ICONS[change.change],
        moment=when(change.at, now),
        day=when(change.at, now).rpartition(" ")[0],
        parts=sentence(change),
        holder=holder_view(change.holder),
        from_to=change.change not in _KEEPS_HOLDER,
        previous=holder_view(last),
        next=None if to_nobody else holder_view(change.holder),
        gap="" if gap is None else age(gap),
        gap_is_long=gap is not None and gap >= LONG_GAP_SECONDS,
        window=_window(change, now),
    )


def sentence(change: Change) -> tuple[Part, ...]:
    """The change as a sentence with a full stop."""
    parts = [*_SENTENCES[change.change](change), Part(".")]
    if change.missed:
        parts.append(Part(" "))
        parts.append(
            Part(f"{counted(change.missed, 'change')} of holder before it not seen.", "bad")
        )
    return tuple(parts)


def _name(change: Change) -> Part:
    return Part(change.name, "name")


def _holder(identity: str | None) -> Part:
    view = holder_view(identity)
    return Part(view.short, "holder") if view else Part("nobody")


def _gap(change: Change) -> list[Part]:
    """The time without a holder that this change ended, if any."""
    gap = change.gap_seconds
    if not gap:
        return []
    said = f"after {age(gap)} without a holder"
    return [Part(" "), Part(said, "bad" if gap >= LONG_GAP_SECONDS else "")]


def _created(change: Change) -> list[Part]:
    if change.holder is None:
        return [_name(change), Part(" was created; nobody holds it")]
    if change.kind is Kind.HEARTBEAT:
        return [Part("Heartbeat of "), _name(change), Part(" appeared")]
    return [_name(change), Part(" was created, held by "), _holder(change.holder)]


def _acquired(change: Change) -> list[Part]:
    return [_name(change), Part(" was acquired by "), _holder(change.holder), *_gap(change)]


def _released(change: Change) -> list[Part]:
    return [_name(change), Part(" was released by "), _holder(change.previous_holder)]


def _taken_over(change: Change) -> list[Part]:
    before, after = _holder(change.previous_holder), _holder(change.holder)
    if before == after:
        parts = [_name(change), Part(" was taken over by another identity of "), after]
    else:
        parts = [_name(change), Part(" was taken over by "), after, Part(" from "), before]
    return [*parts, *_gap(change)]


def _replaced(change: Change) -> list[Part]:
    before, after = _holder(change.previous_holder), _holder(change.holder)
    if before == after:
        parts = [_name(change), Part(" passed to another identity of "), after]
        return [*parts, Part(": the one before was replaced while it still held")]
    parts = [_name(change), Part(" passed to "), after, Part(": "), before]
    return [*parts, Part(" was replaced while it still held")]


def _expired(change: Change) -> list[Part]:
    if change.kind is Kind.HEARTBEAT:
        return [Part("Heartbeat of "), _name(change), Part(" expired")]
    last = change.holder or change.previous_holder
    return [_name(change), Part(" expired; last held by "), _holder(last)]


def _recovered(change: Change) -> list[Part]:
    if change.kind is not Kind.HEARTBEAT:
        said = [_name(change), Part(" recovered: renewed again by "), _holder(change.holder)]
        return [*said, *_gap(change)]
    after = f", {age(change.gap_seconds)} after it expired" if change.gap_seconds else ""
    return [Part("Heartbeat of "), _name(change), Part(f" recovered{after}")]


def _restarted(change: Change) -> list[Part]:
    said = [_name(change), Part(" restarted: acquired anew by its holder "), _holder(change.holder)]
    return [*said, *_gap(change)]


def _reconfigured(change: Change) -> list[Part]:
    what = listed(change.fields, limit=4) or "its configuration"
    return [_name(change), Part(f" was reconfigured: {what}")]


def _deleted(change: Change) -> list[Part]:
    if change.previous_holder is None:
        return [_name(change), Part(" was deleted; nobody held it")]
    return [_name(change), Part(" was deleted; last held by "), _holder(change.previous_holder)]


_SENTENCES: dict[ChangeType, Callable[[Change], list[Part]]] = {
    ChangeType.CREATED: _created,
    ChangeType.ACQUIRED: _acquired,
    ChangeType.RELEASED: _released,
    ChangeType.TAKEN_OVER: _taken_over,
    ChangeType.REPLACED: _replaced,
    ChangeType.EXPIRED: _expired,
    ChangeType.RECOVERED: _recovered,
    ChangeType.RESTARTED: _restarted,
    ChangeType.RECONFIGURED: _reconfigured,
    ChangeType.DELETED: _deleted,
}


def _window(change: Change, now: datetime) -> str:
    """When an inferred change may have happened."""
    if not change.inferred:
        return ""
    if change.inferred_since is None:
        return f"inferred at {when(change.observed_at, now)}"
    since, until = when(change.inferred_since, now), when(change.observed_at, now)
    return f"inferred: between {since} and {until}"
