"""A change as a sentence in parts, which the template marks up: no HTML is made from data."""

from __future__ import annotations

import hashlib
from datetime import datetime
from string import Formatter
from urllib.parse import urlencode

import msgspec

from dashboard.parts.formatting import age, counted, listed, when
from dashboard.parts.holder_name import HolderView, holder_view
from dashboard.parts.lease.change_cause import ChangeCause, change_cause, written_by_hand
from dashboard.parts.lease.row import lease_url
from dashboard.parts.lease.shown_name import ShownName, shown_name
from dashboard.parts.query.url_time import write_moment
from leases.domain.changes.change import Change, ChangeType
from leases.domain.changes.change_identity import identity
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.severity import LONG_GAP_SECONDS


class Part(msgspec.Struct, frozen=True):
    """A piece of a sentence; `mark` is "" (plain), "name", "holder" or "bad". A shortened holder
    is `whole` in its tooltip.
    """

    text: str
    mark: str = ""
    whole: str = ""


class WrittenBy(msgspec.Struct, frozen=True):
    """Who made a change through Leaseboard; `url` is the row of the audit trail."""

    username: str
    url: str


class ChangeLine(msgspec.Struct, frozen=True, kw_only=True):
    """`window` says when an inferred change may have happened; `icon` is a symbol of the sprite."""

    change: Change
    shown: ShownName
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
    by_hand: bool  # the writer is a tool of people
    cause: ChangeCause | None  # None: it belongs to no incident
    written_by: WrittenBy | None = None  # the write through Leaseboard that made it

    @property
    def key(self) -> str:
        return f"{self.change.namespace}/{self.change.name}"

    @property
    def id(self) -> str:
        """The same for every process that saw the change."""
        whole = f"{self.key} {identity(self.change)}"
        return hashlib.blake2b(whole.encode(), digest_size=9).hexdigest()

    @property
    def before(self) -> HolderView | None:
        """The holder up to this change."""
        return self.previous if self.from_to else self.holder

    @property
    def at_url(self) -> str:
        """The Lease as of this change."""
        return f"{self.url}?{urlencode({'at': write_moment(self.change.at)})}"

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
    key = ObjectName(change.namespace, change.name)
    return ChangeLine(
        change=change,
        shown=shown_name(change.cluster, key),
        url=lease_url(change.cluster, key),
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
        gap_is_long=_gap_is_long(change, gap),
        window=_window(change, now),
        by_hand=written_by_hand(change),
        cause=change_cause(change, now),
    )


def sentence(change: Change) -> tuple[Part, ...]:
    """The change as a sentence with a full stop."""
    names = {
        "name": Part(change.name, "name"),
        "holder": holder_part(change.holder),
        "previous": holder_part(change.previous_holder),
        "last": holder_part(change.holder or change.previous_holder),
        "what": Part(listed(change.fields, limit=4) or "its configuration"),
    }
    parts = []
    for words, name, _, _ in Formatter().parse(_sentence_of(change, names)):
        parts += [Part(words)] if words else []
        parts += [names[name]] if name else []
    parts += [*_gap(change), Part(".")]
    if change.missed:
        said = f"{counted(change.missed, 'change')} of holder before it not seen."
        parts += [Part(" "), Part(said, "bad")]
    return tuple(parts)


_SENTENCES = {
    ChangeType.ACQUIRED: "{name} was acquired by {holder}",
    ChangeType.RELEASED: "{name} was released by {previous}",
    ChangeType.TAKEN_OVER: "{name} was taken over by {holder} from {previous}",
    ChangeType.REPLACED: "{name} passed to {holder}: {previous} was replaced while it still held",
    ChangeType.EXPIRED: "{name} expired; last held by {last}",
    ChangeType.RECOVERED: "{name} recovered: renewed again by {holder}",
    ChangeType.RESTARTED: "{name} restarted: acquired anew by its holder {holder}",
    ChangeType.RECONFIGURED: "{name} was reconfigured: {what}",
}
_SAME_HOST = {
    ChangeType.TAKEN_OVER: "{name} was taken over by another identity of {holder}",
    ChangeType.REPLACED: "{name} passed to another identity of {holder}: "
    "the one before was replaced while it still held",
}
_HEARTBEAT = {
    ChangeType.EXPIRED: "Heartbeat of {name} expired",
    ChangeType.RECOVERED: "Heartbeat of {name} recovered",
}
_WITH_GAP = (
    ChangeType.ACQUIRED, ChangeType.TAKEN_OVER, ChangeType.RECOVERED, ChangeType.RESTARTED,
)  # fmt: skip


def _sentence_of(change: Change, names: dict[str, Part]) -> str:
    """The sentence with its names in braces."""
    word, heartbeat = change.change, change.kind is Kind.HEARTBEAT
    if word is ChangeType.CREATED:
        if change.holder is None:
            return "{name} was created; nobody holds it"
        born = "{name} was created, held by {holder}"
        return "Heartbeat of {name} appeared" if heartbeat else born
    if word is ChangeType.DELETED:
        held = change.previous_holder is not None
        return "{name} was deleted; " + ("last held by {previous}" if held else "nobody held it")
    if heartbeat and word in _HEARTBEAT:
        return _HEARTBEAT[word]
    same_host = word in _SAME_HOST and names["holder"].text == names["previous"].text
    return (_SAME_HOST if same_host else _SENTENCES)[word]


def holder_part(identity: str | None) -> Part:
    """Name a holder in a sentence."""
    view = holder_view(identity)
    if view is None:
        return Part("nobody")
    return Part(view.short, "holder", "" if view.short == view.identity else view.identity)


def _gap(change: Change) -> list[Part]:
    """The time without a holder that this change ended, if any."""
    gap = change.gap_seconds
    if not gap or change.change not in _WITH_GAP:
        return []
    if change.change is ChangeType.RECOVERED and change.kind is Kind.HEARTBEAT:
        return [Part(f", {age(gap)} after it expired")]
    said = f"after {age(gap)} without a holder"
    return [Part(" "), Part(said, "bad" if _gap_is_long(change, gap) else "")]


def _gap_is_long(change: Change, seconds: float | None) -> bool:
    """A lock that was free for long was needed by nobody."""
    return seconds is not None and seconds >= LONG_GAP_SECONDS and change.kind is not Kind.LOCK


def _window(change: Change, now: datetime) -> str:
    """When an inferred change may have happened."""
    if not change.inferred:
        return ""
    if change.inferred_since is None:
        return f"inferred at {when(change.observed_at, now)}"
    since, until = when(change.inferred_since, now), when(change.observed_at, now)
    return f"inferred: between {since} and {until}"
