"""The controls of the list of incidents: choices, counts, pager, and the words for none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import QueryDict

from dashboard.pages.incidents.filter import IncidentFilter
from dashboard.parts.cause_words import CAUSE_WORDS
from dashboard.parts.formatting import capitalized, shortened, span_of
from dashboard.parts.frame.list_controls import Chip, ListLinks
from dashboard.parts.query.time_range import RANGES
from dashboard.parts.query.url_parameters import for_input, typed
from dashboard.parts.query.url_time import write_moment
from leases.domain.cause.incident import Cause

RANGE_LABELS = {"": "All times"} | {
    name: f"Last {span_of(length)}" for name, length in RANGES.items()
}
MAX_SAID = 80  # characters of a value in a sentence
Counts = Mapping[tuple[Cause, bool], int]  # of a cause, of those that go on or are over


class IncidentLinks(ListLinks):
    """The links of the list; another choice begins at the newest incident."""

    wanted: IncidentFilter

    def url(self, **changes: Any) -> str:
        return super().url(**{"before": "", **changes})

    def going_on(self, counts: Counts) -> list[Chip]:
        """All, those that go on, and those that are over, of the chosen causes."""
        causes = self.wanted.causes or tuple(Cause)
        on = sum(counts.get((cause, True), 0) for cause in causes)
        over = sum(counts.get((cause, False), 0) for cause in causes)
        choices = (("All", "", on + over), ("Going on", "true", on), ("Over", "false", over))
        return [
            Chip(value, label, self.url(going_on=value), value == self.wanted.going_on, number)
            for label, value, number in choices
        ]

    def causes(self, counts: Counts) -> list[Chip]:
        """The causes that there are, any of which may be on."""
        wanted = self.wanted.causes
        states = {"": (True, False), "true": (True,), "false": (False,)}[self.wanted.going_on]
        numbers = {c: sum(counts.get((c, state), 0) for state in states) for c in Cause}
        every = Chip("", "All causes", self.url(causes=()), not wanted, sum(numbers.values()))
        return [every, *(self._cause(c, numbers[c]) for c in Cause if numbers[c] or c in wanted)]

    def _cause(self, cause: Cause, number: int) -> Chip:
        on = cause in self.wanted.causes
        others = tuple(one for one in self.wanted.causes if one is not cause)
        url = self.url(causes=others if on else (*others, cause))
        return Chip(cause.value, capitalized(CAUSE_WORDS[cause]), url, on, number)

    def exact(self) -> list[Chip]:
        """The whole names that a link asked for, each with the URL without it."""
        return [
            Chip(name, shortened(for_input(value), MAX_SAID), self.url(**{name: ""}), on=True)
            for name in ("lease", "holder")
            if (value := getattr(self.wanted, name))
        ]


def incident_board(path: str, wanted: IncidentFilter, counts: Counts) -> dict[str, Any]:
    """Make the controls of the page at `path`."""
    links = IncidentLinks(path, wanted)
    going_on = links.going_on(counts)
    return {
        "namespace": wanted.namespace,
        "lease": wanted.lease,
        "holder": for_input(wanted.holder),
        "range": wanted.range,
        "ranges": list(RANGE_LABELS.items()),
        "since": write_moment(wanted.since),
        "until": write_moment(wanted.until),
        "going_on": going_on,
        "causes": links.causes(counts),
        "exact": links.exact(),
        "kept": links.kept("cause", "going_on"),
        "number_going_on": going_on[1].count,
        "total": next(chip.count for chip in going_on if chip.on),
        "says": _says(wanted),
        "newest_url": links.url() if wanted.before else "",
        "going_on_url": links.url(going_on="true"),
        "clear_url": path,
        "csv_url": _as(links, "csv"),
        "json_url": _as(links, "json"),
    }


def typed_board(path: str, query: QueryDict) -> dict[str, Any]:
    """The controls of a refused filter, with what was typed."""
    typed_in = {name: typed(query, name) for name in ("namespace", "lease", "holder", "range")}
    ends = {"since": typed(query, "from"), "until": typed(query, "to")}
    return incident_board(path, IncidentFilter(), {}) | typed_in | ends


def _as(links: IncidentLinks, answer_as: str) -> str:
    url = links.url()
    return f"{url}{'&' if '?' in url else '?'}format={answer_as}"


def _says(wanted: IncidentFilter) -> str:
    """The filter in words, or ""."""
    words = {
        "cause is": " or ".join(CAUSE_WORDS[cause] for cause in wanted.causes),
        "namespace is": wanted.namespace,
        "Lease is": wanted.lease,
        "holder is": wanted.holder,
        "since": write_moment(wanted.since),
        "before": write_moment(wanted.until),
    }
    said = [RANGE_LABELS[wanted.range]] if wanted.range else []
    said += [f"{what} {shortened(value, MAX_SAID)}" for what, value in words.items() if value]
    said += {"true": ["going on"], "false": ["over"]}.get(wanted.going_on, [])
    return capitalized(for_input(", ".join(said)))
