"""An incident as Markdown, the start of a post-mortem. Text of the cluster or of people cannot
become markup: names are code, everything else is escaped.

Source: https://github.github.com/gfm/
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Protocol

from dashboard.pages.incidents.evidence import (
    AffectedLease,
    in_order,
    unseen_of_worst,
    without_note,
)
from dashboard.parts.cause_words import CAUSE_MEANINGS, CAUSE_WORDS, SOURCE_WORDS
from dashboard.parts.change_sentence import sentence
from dashboard.parts.formatting import age, capitalized, counted, day, fine_clock
from dashboard.parts.incident_line import no_gap, worst_gap
from leases.domain.change import Change
from leases.domain.incident import Incident

_MARKUP = re.compile(r"([\\`*_{}\[\]#|~$])")
_AT_START = re.compile(r"^(\d*)([-+=>.)])")
_TICKS = re.compile(r"`+")
_HIDDEN = {"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"}


class Note(Protocol):
    """What a person noted."""

    @property
    def who(self) -> str: ...
    @property
    def at(self) -> datetime: ...
    @property
    def text(self) -> str: ...


def incident_markdown(
    incident: Incident,
    affected: Sequence[AffectedLease],
    story: Sequence[Change],
    notes: Iterable[Note],
    *,
    url: str,
    now: datetime,
) -> str:
    """The whole document. `url` is the page of the incident, `now` the moment of what is known."""
    lines = [f"# {plain(incident.sentence)}", "", *_facts(incident, affected, url, now)]
    lines += ["", "## Evidence", "", *_evidence(incident)]
    lines += ["", "## Timeline", "", *_timeline(incident, story)]
    lines += ["", "## Affected Leases", "", *_affected(affected)]
    lines += ["", "## Notes", "", *_notes(notes)]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Text in one line, for any place of a document."""
    return _AT_START.sub(r"\1\\\2", _escaped(text).strip())


def _escaped(text: str) -> str:
    """Text inside a line: no markup, no link, and nobody is notified."""
    text = re.sub(r"\s+", " ", _shown(text))
    text = _MARKUP.sub(r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))
    text = text.replace("://", r"\://").replace("www.", r"www\.")
    return text.replace("@", "@<!-- -->")


def code(text: str) -> str:
    """A name as a code span, which no character in it can end. A table needs `|` escaped too."""
    text = " ".join(_shown(text).split()) or " "
    fence = "`" * (1 + max(map(len, _TICKS.findall(text)), default=0))
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{text}{room}{fence}".replace("|", r"\|")


def _shown(text: str) -> str:
    """Invisible characters, and those that turn the direction of text, become escapes."""
    return "".join(
        f"\\u{ord(one):04x}" if unicodedata.category(one) in _HIDDEN and one not in "\n\t" else one
        for one in text
    )


def _facts(
    incident: Incident, affected: Sequence[AffectedLease], url: str, now: datetime
) -> list[str]:
    ended = incident.ended
    lease, unseen = unseen_of_worst(incident, affected)
    length = age(((ended or now) - incident.began).total_seconds())
    cause = f"{capitalized(CAUSE_WORDS[incident.cause])}, {incident.confidence.value}"
    facts = [
        ("Cluster", code(incident.cluster)),
        ("Cause", plain(f"{cause}. {CAUSE_MEANINGS[incident.cause]}")),
        ("Began", _moment(incident.began)),
        (
            "Ended",
            f"{_moment(ended)}, after {length}"
            if ended
            else f"went on up to {_moment(now)}, for {length}",
        ),
        ("Longest time without a holder", worst_gap(incident) or no_gap(incident)),
        ("Perhaps without a holder", f"{unseen}: {code(str(lease))}" if lease and unseen else ""),
        ("Leases", f"{incident.lease_count:,}"),
        ("Hosts", _list(incident.hosts)),
        ("Written by", code(incident.writer) if incident.writer else ""),
        ("Page", f"<{url}>"),
    ]
    rows = [f"| {name} | {value} |" for name, value in facts if value]
    return ["| | |", "| --- | --- |", *rows]


def _evidence(incident: Incident) -> Iterator[str]:
    for number, (_, one) in enumerate(in_order(incident), 1):
        yield f"{number}. {plain(one.sentence)} ({SOURCE_WORDS[one.source]})"
    if not incident.evidence:
        yield "None."
    for source in incident.without:
        title, text = without_note(source)
        yield from ("", f"**{title}.** {text}")


def _timeline(incident: Incident, story: Sequence[Change]) -> Iterator[str]:
    yield from ("| Time, UTC | Lease | What happened |", "| --- | --- | --- |")
    for change in story:
        said = "".join(
            code(part.whole or part.text)
            if part.mark in ("name", "holder")
            else _escaped(part.text)
            for part in sentence(change)
        )
        yield f"| {_moment(change.at)} | {code(f'{change.namespace}/{change.name}')} | {said} |"
    if incident.ended is not None:
        yield f"| {_moment(incident.ended)} | | The incident is over. |"


def _affected(affected: Sequence[AffectedLease]) -> Iterator[str]:
    yield from ("| Lease | Before | After | Without a holder for |", "| --- | --- | --- | --- |")
    for one in affected:
        if one.changes:
            before, after = (code(who) if who else "nobody" for who in (one.before, one.after))
            lost = one.lost_for or one.no_time
        else:
            before = after = lost = "not stored"
        yield f"| {code(str(one.key))} | {before} | {after} | {lost} |"


def _notes(notes: Iterable[Note]) -> Iterator[str]:
    none = True
    for note in notes:
        none = False
        yield from (f"**{plain(note.who)}**, {_moment(note.at)}:", "")
        yield from (f"> {plain(line)}".rstrip() for line in note.text.splitlines())
        yield ""
    if none:
        yield "None."


def _list(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(map(code, names[:most]))
    more = len(names) - most
    return f"{shown} and {counted(more, 'more', 'more')}" if more > 0 else shown


def _moment(moment: datetime) -> str:
    return f"{day(moment)} {fine_clock(moment)}"
