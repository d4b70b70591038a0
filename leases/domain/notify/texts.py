"""The words of messages, for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from leases.domain.bounded_time import in_utc
from leases.domain.notify.message import Message, Stage

MAX_TITLE = 200  # characters
_WORDS = {
    Stage.OPENED: "New", Stage.WORSENED: "Worse", Stage.OVER: "Over", Stage.TEST: "Test",
}  # fmt: skip


def title(message: Message) -> str:
    """One line: `New: production: sentence`."""
    words = f"{_WORDS[message.stage]}: {message.cluster}: {message.sentence}"
    line = " ".join(words.split())
    return line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1]}…"


def title_of_all(messages: Sequence[Message]) -> str:
    """The subject of one message, or of several that are sent together."""
    if len(messages) == 1:
        return title(messages[0])
    clusters = ", ".join(dict.fromkeys(one.cluster for one in messages))
    return f"{len(messages)} incidents: {clusters}"[:MAX_TITLE]


def facts(message: Message) -> list[tuple[str, str]]:
    """What a message says besides its title, as names with values."""
    found = [
        ("Cause", f"{message.cause.value.replace('_', ' ')} ({message.confidence.value})"),
        ("Severity", message.severity.value),
        ("Began", _moment(message.began)),
    ]
    if message.ended is not None:
        length = (message.ended - message.began).total_seconds()
        found.append(("Ended", f"{_moment(message.ended)}, after {_seconds(length)}"))
    if message.part_of:
        found.append(("Belongs to", f"incident {message.part_of}"))
    if message.worst_gap_seconds:
        found.append(("Longest without a holder", _seconds(message.worst_gap_seconds)))
    found.append(("Leases", _listed(message.leases, message.leases_total)))
    if message.hosts_total:
        found.append(("Hosts", _listed(message.hosts, message.hosts_total)))
    if message.url:
        found.append(("Page", message.url))
    return found


def text(message: Message) -> str:
    """The whole message as lines."""
    return "\n".join([title(message), *(f"{name}: {value}" for name, value in facts(message))])


def text_of_all(messages: Sequence[Message]) -> str:
    return "\n\n".join(map(text, messages))


def _moment(moment: datetime) -> str:
    return f"{in_utc(moment):%Y-%m-%d %H:%M:%S} UTC"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s"


def _listed(names: Sequence[str], total: int) -> str:
    more = f" and {total - len(names):,} more" if total > len(names) else ""
    return ", ".join(names) + more if names else f"{total:,}"
