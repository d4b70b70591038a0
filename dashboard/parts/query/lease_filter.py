"""Read from a URL which Leases are wanted, and test whether one Lease is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.http import QueryDict

from dashboard.parts.query.holder_parameter import is_held_by
from dashboard.parts.query.list_filter import ListFilter
from dashboard.parts.query.url_parameters import (
    LARGEST_PAGE,
    BadFilter,
    is_true,
    number,
    one_of,
    page_number,
    quoted,
    sort_by,
    text,
    true_or_false,
    typed,
    words,
)
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.tracking.tracked_lease import Tracked
from leases.wire.selectors import SelectorError, parse_labels

PAGE_SIZE = 50
WORST_FIRST = "state"
COLUMNS = (
    WORST_FIRST, "namespace", "name", "kind", "holder", "held", "renewed", "changes", "transitions",
)  # fmt: skip
# In which the sort by `changes` counts.
RANGES = {
    "24h": timedelta(hours=24),
    "6h": timedelta(hours=6),
    "1h": timedelta(hours=1),
    "30m": timedelta(minutes=30),
}
USUAL_RANGE = "24h"
Matcher = Callable[[Tracked], bool]


class LeaseFilter(ListFilter, frozen=True, kw_only=True):
    """An empty field filters nothing.

    `text` is part of namespace/name or of the holder, in any case; `holder` is an identity or the
    host in it; `labels` is a label selector of Kubernetes; `at` is the instant of a past list.
    `flapping` adds the Leases that flap to those of `phases`; alone, it leaves only them.
    `abandoned` is "true" for nothing but abandoned Leases, "false" for none of them.
    """

    PARAMETERS = {
        "text": "q", "namespace": "namespace", "holder": "holder", "labels": "labels",
        "kinds": "kind", "phases": "phase", "flapping": "flapping",
        "abandoned": "abandoned", "sort": "sort",
        "range": "range", "limit": "limit", "page": "page", "at": "at",
    }  # fmt: skip
    text: str = ""
    namespace: str = ""
    holder: str = ""
    labels: str = ""
    kinds: tuple[Kind, ...] = ()
    phases: tuple[Phase, ...] = ()
    flapping: bool = False
    abandoned: str = ""
    sort: str = WORST_FIRST
    range: str = USUAL_RANGE
    limit: int = PAGE_SIZE
    at: datetime | None = None

    @property
    def searches(self) -> bool:
        """Whether each Lease must be read to decide if it is wanted."""
        return bool(self.text or self.holder or self.labels)

    @property
    def chooses(self) -> bool:
        """Whether it leaves out any Lease."""
        some = self.namespace or self.kinds or self.phases or self.flapping or self.abandoned
        return bool(self.searches or some)

    @property
    def wanted_phases(self) -> tuple[Phase, ...]:
        return self.phases if self.phases or self.flapping else tuple(Phase)


def read_filter(query: QueryDict) -> LeaseFilter:
    """Raises BadFilter."""
    wanted = LeaseFilter(
        text=text(query, "q"),
        namespace=text(query, "namespace"),
        holder=text(query, "holder"),
        labels=text(query, "labels"),
        kinds=words(query, "kind", Kind),
        phases=words(query, "phase", Phase),
        flapping=is_true(query, "flapping"),
        abandoned=true_or_false(query, "abandoned"),
        sort=sort_by(query, COLUMNS),
        range=one_of(query, "range", tuple(RANGES), USUAL_RANGE),
        page=page_number(query),
        limit=number(query, "limit", default=PAGE_SIZE, largest=LARGEST_PAGE),
    )
    _selects(wanted.labels)
    return wanted


def typed_texts(query: QueryDict) -> LeaseFilter:
    """A refused filter for the form that shows its texts again."""
    names = ("q", "namespace", "holder", "labels")
    words, namespace, holder, labels = (typed(query, name) for name in names)
    return LeaseFilter(text=words, namespace=namespace, holder=holder, labels=labels)


def searched(wanted: LeaseFilter) -> Matcher:
    tests: list[Matcher] = []
    if wanted.holder:
        tests.append(_held_by(wanted.holder))
    if wanted.labels:
        tests.append(_selects(wanted.labels))
    if wanted.text:
        tests.append(_contains(wanted.text.lower()))
    return tests[0] if len(tests) == 1 else lambda lease: all(test(lease) for test in tests)


def wants(wanted: LeaseFilter, flaps: Matcher = lambda _: False) -> Matcher:
    """`flaps` tests whether a Lease flaps."""
    holds, phases = searched(wanted), wanted.wanted_phases

    def matches(lease: Tracked) -> bool:
        return (
            (lease.phase in phases or (wanted.flapping and flaps(lease)))
            and (not wanted.kinds or lease.kind in wanted.kinds)
            and (not wanted.namespace or lease.key.namespace == wanted.namespace)
            and (not wanted.abandoned or lease.abandoned is (wanted.abandoned == "true"))
            and holds(lease)
        )

    return matches


def _contains(text: str) -> Matcher:
    """A test for the text. Names are lower case already; only holders need folding."""
    namespace, slash, name = text.partition("/")

    def matches(lease: Tracked) -> bool:
        meta = lease.lasting.lease.metadata
        if slash and meta.namespace.endswith(namespace) and meta.name.startswith(name):
            return True
        if text in meta.name or text in meta.namespace:
            return True
        holder = lease.lasting.lease.spec.holder_identity
        return holder is not None and holder != meta.name and text in holder.lower()

    return matches


def _held_by(holder: str) -> Matcher:
    named = is_held_by(holder)
    return lambda lease: lease.holder is not None and named(lease.holder)


def _selects(labels: str) -> Matcher:
    try:
        requirements = parse_labels(labels)
    except SelectorError as error:
        raise BadFilter(
            f"labels cannot be {quoted(labels)}: {error}. Write it as for kubectl: app=web,tier!=x."
        ) from error
    bare = all(holds({}) for holds in requirements)  # most Leases have no label

    def matches(lease: Tracked) -> bool:
        found = lease.lasting.lease.metadata.labels
        return all(holds(found) for holds in requirements) if found else bare

    return matches
