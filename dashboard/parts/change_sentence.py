"""A change as a sentence in parts; the newest changes, and who made them."""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from string import Formatter
from urllib.parse import urlencode

import msgspec
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.urls import reverse

from dashboard.access.roles import READ_TRAIL
from dashboard.board import running_board, running_feed
from dashboard.lists.url_parameters import write_moment
from dashboard.parts.audit_line import AuditLine, audit_line
from dashboard.parts.formatting import age, counted, gap_length, listed, shortened, when
from dashboard.parts.incident_line import ChangeCause, change_cause, visible, written_by_hand
from dashboard.parts.names import HolderView, ShownName, beside, holder_view, lease_url, shown_name
from leases.domain.cause.clue import FORM_WRITER, is_human_writer
from leases.domain.change import Change, ChangeType, UnreadableChange, identity
from leases.domain.figures import LONG_GAP_SECONDS
from leases.domain.incident import Incident
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import plus
from leases.domain.watched_times import BRIEF
from leases.history import find_changes
from leases.history.audit_trail import AuditFilter, matching, writes_behind, writes_of
from leases.history.database import AWAY, from_stored, reach
from leases.models import Edit


class Part(msgspec.Struct, frozen=True):
    """A piece of a sentence; `mark` is "" (plain), "name", "holder" or "bad". A shortened holder
    is `whole` in its tooltip.
    """

    text: str
    mark: str = ""
    whole: str = ""


class WrittenBy(msgspec.Struct, frozen=True):
    """Who made a change through Leaseboard, and why; `url` is the row of the audit trail."""

    username: str
    url: str
    reason: str = ""


class ChangeLine(msgspec.Struct, frozen=True, kw_only=True):
    """`window` says when a change may have happened that was inferred, or that it was seen later;
    `icon` is a symbol of the sprite.
    """

    change: Change
    shown: ShownName
    url: str
    word: str
    phase: str
    icon: str
    moment: str
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
    def by_form(self) -> bool:
        return self.change.writer == FORM_WRITER

    @property
    def by_whom(self) -> str:
        """Where no person is named: live rows are drawn before the audit trail has the answer."""
        return "through a form" if self.by_form else f"by {shortened(self.change.writer or '', 40)}"

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


def change_line(change: Change, now: datetime, *, by_form: bool = False) -> ChangeLine:
    """Present a change; `now` decides whether its date is shown, `by_form`: a form made it."""
    gap = change.gap_seconds
    to_nobody = change.change in _TO_NOBODY
    last = change.previous_holder or (change.holder if to_nobody else None)
    key = ObjectName(change.namespace, change.name)
    following = None if to_nobody else holder_view(change.holder)
    return ChangeLine(
        change=change,
        shown=shown_name(change.cluster, key),
        url=lease_url(change.cluster, key),
        word="Unreadable" if isinstance(change, UnreadableChange) else WORDS[change.change],
        phase=_PHASES.get(change.change, ""),
        icon=_ICONS[change.change],
        moment=when(change.at, now),
        parts=sentence(change, by_form=by_form),
        holder=holder_view(change.holder),
        from_to=change.change not in _KEEPS_HOLDER,
        previous=beside(holder_view(last), following),
        next=following,
        gap="" if gap is None else _short_gap(change, gap),
        gap_is_long=_gap_is_long(change, gap),
        window=_window(change, now),
        by_hand=written_by_hand(change),
        cause=change_cause(change, now),
    )


def sentence(change: Change, *, by_form: bool = False) -> tuple[Part, ...]:
    """The change as a sentence with a full stop. A deletion leaves no writer: `by_form` says it."""
    if isinstance(change, UnreadableChange):
        return (Part(f"Row {change.row} of history is unreadable.", "bad"),)
    names = {
        "name": Part(change.name, "name"),
        "holder": holder_part(change.holder),
        "previous": holder_part(change.previous_holder),
        "last": holder_part(change.holder or change.previous_holder),
        "what": Part(listed(change.fields, limit=4) or "its configuration"),
    }
    parts = []
    by_form = by_form or change.writer == FORM_WRITER
    for words, name, _, _ in Formatter().parse(_sentence_of(change, names, by_form=by_form)):
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
_BY_FORM = {  # of any Leaseboard: the holder of before did not do it
    ChangeType.RELEASED: "{name} was released through a form; last held by {previous}",
    ChangeType.ACQUIRED: "{name} was handed to {holder} through a form",
    ChangeType.TAKEN_OVER: "{name} was handed to {holder} through a form; last held by {previous}",
    ChangeType.REPLACED: "{name} was handed to {holder} through a form, while {previous} "
    "still held it",
    ChangeType.RECOVERED: "{name} recovered: renewed through a form for {holder}",
    ChangeType.RECONFIGURED: "{name} was edited through a form: {what}",
}
_SAME_HOST = {
    ChangeType.TAKEN_OVER: "{name} was taken over by another identity of {holder}",
    ChangeType.REPLACED: "{name} passed to another identity of {holder}: "
    "the one before was replaced while it still held",
}
_EDITED = "An edit of {what} made {name} count as held by {holder} again"
_BY_HAND = "{name} recovered: somebody renewed it for {holder}"
_HEARTBEAT = {
    ChangeType.EXPIRED: "Heartbeat of {name} expired",
    ChangeType.RECOVERED: "Heartbeat of {name} recovered",
}
_WITH_GAP = (
    ChangeType.ACQUIRED, ChangeType.TAKEN_OVER, ChangeType.RECOVERED, ChangeType.RESTARTED,
)  # fmt: skip


def _sentence_of(change: Change, names: dict[str, Part], *, by_form: bool) -> str:
    """The sentence with its names in braces."""
    word, heartbeat = change.change, change.kind is Kind.HEARTBEAT
    how = " through a form" if by_form else ""
    if word is ChangeType.CREATED:
        if change.holder is None:
            return f"{{name}} was created{how}; nobody holds it"
        born = f"{{name}} was created{how}, held by {{holder}}"
        return "Heartbeat of {name} appeared" if heartbeat and not by_form else born
    if word is ChangeType.DELETED:
        held = change.previous_holder is not None
        gone = f"{{name}} was deleted{how}; "
        return gone + ("last held by {previous}" if held else "nobody held it")
    if word is ChangeType.RECOVERED and change.fields:
        return _EDITED
    if by_form and word in _BY_FORM:
        return _BY_FORM[word]
    if word is ChangeType.RECOVERED and is_human_writer(change.writer or ""):
        return _BY_HAND
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


AT_ONCE = 0.1  # seconds: a shorter time without a holder would read 0.0 s


def _gap(change: Change) -> list[Part]:
    """The time without a holder that this change ended, if any."""
    gap = change.gap_seconds
    if not gap or change.change not in _WITH_GAP:
        return []
    length, _, unseen = gap_length(gap, unwatched_before(change)).partition(", ")
    aside = f", {unseen}" if unseen else ""
    if change.change is ChangeType.RECOVERED and change.kind is Kind.HEARTBEAT:
        return [Part(f", {length} after it expired{aside}")]
    if gap < AT_ONCE:
        return [Part(" at once")]
    said = f"after {length} without a holder{aside}"
    return [Part(" "), Part(said, "bad" if _gap_is_long(change, gap) else "")]


def _short_gap(change: Change, gap: float) -> str:
    if gap < AT_ONCE:
        return f"under {AT_ONCE} s"
    return f"at most {age(gap)}" if unwatched_before(change) else age(gap)


def _gap_is_long(change: Change, seconds: float | None) -> bool:
    """A lock that was free for long was needed by nobody. Time that nobody watched is not long."""
    if seconds is None or change.kind is Kind.LOCK:
        return False
    return seconds - unwatched_before(change) >= LONG_GAP_SECONDS


def unwatched_before(change: Change) -> float:
    """How much of the time without a holder that a change ended was not watched."""
    gap, since, feed = change.gap_seconds, change.inferred_since, running_feed(change.cluster)
    if gap is None:
        return 0.0
    lost_at = plus(change.at, -timedelta(seconds=gap))
    unseen = feed.activity.watched.held(lost_at, change.at).unwatched if feed else 0.0
    if change.inferred and since is not None:
        unseen = max(unseen, (change.at - since).total_seconds())
    return max(0.0, min(gap, unseen))


def _window(change: Change, now: datetime) -> str:
    """When an inferred change may have happened, or when one was seen that came after a break."""
    if not change.inferred:
        late = change.observed_at - change.at > BRIEF
        return f"seen later, at {when(change.observed_at, now)}" if late else ""
    if change.inferred_since is None:
        return f"inferred at {when(change.observed_at, now)}"
    since, until = when(change.inferred_since, now), when(change.observed_at, now)
    return f"inferred: between {since} and {until}"


def recent_changes(cluster: str, limit: int) -> tuple[int, list[Change]]:
    """The last `seq` of the feed, and the changes up to it, newest first."""
    seq, sent = running_board().feeds[cluster].newest_first()
    written = _written(cluster, limit) if len(sent) < limit else []
    return seq, _merged(sent, _up_to(cluster, seq, written))[:limit]


def _written(cluster: str, limit: int) -> list[Change]:
    """Those of history; none while it is not reachable, which the page says."""
    if reach.error:
        return []
    try:
        return find_changes.recent(cluster, limit)
    except AWAY as error:
        reach.failed(error)
        return []


def with_known_causes(written: list[Change]) -> list[Change]:
    """Changes of history with the causes that pages hear of moments before it has them."""
    feeds = running_board().feeds
    return [feeds[change.cluster].explainable.with_cause(change) for change in written]


def with_unwritten(cluster: str, written: list[Change], limit: int) -> tuple[int, list[Change]]:
    """The last `seq` of the feed, and the newest changes: those of history, the newest that it has,
    and those not written yet, which may be older than some that are.
    """
    seq, sent = running_board().feeds[cluster].newest_first()
    return seq, _merged(sent, written)[:limit]


def changes_of(cluster: str, key: ObjectName, limit: int) -> tuple[int, list[Change]]:
    """The last `seq` of the feed, and the newest changes of one Lease."""
    seq, sent = running_board().feeds[cluster].newest_first()
    mine = [
        change for change in sent if (change.namespace, change.name) == (key.namespace, key.name)
    ]
    written = find_changes.of_lease(cluster, key.namespace, key.name, limit)
    return seq, with_known_causes(_merged(mine, _up_to(cluster, seq, written))[:limit])


def _up_to(cluster: str, seq: int, written: list[Change]) -> list[Change]:
    """Without the changes that the feed sends after `seq`, or the page would show them twice."""
    _, sent = running_board().feeds[cluster].newest()
    later = {_identity(change) for number, change in sent if number > seq}
    return [change for change in written if _identity(change) not in later]


def _identity(change: Change) -> tuple[str, str, str]:
    return change.namespace, change.name, identity(change)


def _merged(sent: list[Change], written: list[Change]) -> list[Change]:
    """All changes of both, each once, newest first; of two, the one whose cause is known.

    History may still have the cause of before.
    """
    once = {_identity(change): change for change in sent}
    for change in written:
        known = once.get(_identity(change))
        if known is None or known.incident is None:
            once[_identity(change)] = change
    return sorted(once.values(), key=lambda change: change.at, reverse=True)


User = AbstractBaseUser | AnonymousUser
MAX_REASON = 200  # characters


def written_by(row: Edit) -> WrittenBy:
    url = reverse("audit_row", args=[row.pk])
    return WrittenBy(row.username, url, shortened(visible(from_stored(row.reason)), MAX_REASON))


def authors_of(incidents: Sequence[Incident], user: User) -> dict[str, WrittenBy]:
    """Return who made each of these incidents through a form, by their ids."""
    if not incidents or not _may_read(user):
        return {}
    return {number: written_by(row) for number, row in writes_behind(incidents).items()}


LAST = 5  # writes that a Lease's page shows


def signed_lines(changes: Sequence[Change], now: datetime, user: User) -> list[ChangeLine]:
    """Present changes, each with who made it."""
    writes = writes_of(changes) if changes and _may_read(user) else {}
    return [
        msgspec.structs.replace(change_line(change, now, by_form=True), written_by=written_by(row))
        if (row := writes.get(change))
        else change_line(change, now)
        for change in changes
    ]


def last_writes(cluster: str, key: ObjectName, user: User) -> list[AuditLine]:
    """Return the newest writes of one Lease."""
    if not _may_read(user):
        return []
    rows = matching(AuditFilter(cluster=cluster, lease=key))[:LAST]
    return [audit_line(row) for row in rows]


def _may_read(user: User) -> bool:
    return user.has_perm(READ_TRAIL)  # type: ignore[union-attr]
