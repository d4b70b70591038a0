"""A name in pieces, for CSS to cut in the middle: what tells it from its siblings stays."""

from __future__ import annotations

from collections.abc import Iterable

from dashboard.board import running_store
from leases.domain.lease import ObjectName
from leases.tracking.store import Store

# Each piece with whether CSS may cut it. A short name is one piece, which it may not.
ShownName = tuple[tuple[str, bool], ...]

WHOLE = 18  # letters: a name up to this length is never cut
_END = 6  # letters that stay at the end
_BEFORE, _AFTER = 3, 2  # letters that stay around the first one that differs
_FEWEST = 4  # letters that are worth an ellipsis
_HEAD = 7  # letters; a shorter beginning is not cut
_BRANCHES = 2  # places to keep, such as the zone and the number of `worker-eu-1-7`
_LAST = "\U0010ffff"  # sorts after every letter of a name


def shown_name(cluster: str, key: ObjectName, domain: str = "") -> ShownName:
    """The name without `domain`, cut where the names beside it in the list of the cluster agree."""
    store = running_store(cluster)
    places = _branches(store, key) if store and len(key.name) > WHOLE else []
    return cut_name(key.name.removesuffix(domain), places)


def cut_name(name: str, branches: Iterable[int] = ()) -> ShownName:
    """Keep the end of a long name, and some letters where its siblings begin to differ."""
    if len(name) <= WHOLE:
        return ((name, False),)
    end = len(name) - _END
    kept = [(end, len(name))]
    for place in sorted(branches, reverse=True):
        first = _start(name, place)
        if kept[0][0] - (place + _AFTER + 1) < _FEWEST:
            kept[0] = min(first, kept[0][0]), kept[0][1]
        else:
            kept.insert(0, (first, place + _AFTER + 1))
    if kept[0][0] < _HEAD:
        kept[0] = 0, kept[0][1]
    pieces: list[tuple[str, bool]] = []
    at = 0
    for first, last in kept:
        pieces += [(name[at:first], True), (name[first:last], False)]
        at = last
    return tuple(piece for piece in pieces if piece[0])


def _start(name: str, place: int) -> int:
    """Where the letters begin that are kept for a difference at `place`: with its word, if near."""
    return max(place - _BEFORE, *(name.rfind(mark, 0, place) for mark in "-."), 0)


def _branches(store: Store, key: ObjectName) -> list[int]:
    """How many first letters the name shares with its nearest siblings, and with those beyond."""
    places: list[int] = []
    first = last = key
    while len(places) < _BRANCHES:
        shared = max((_shared(key, other) for other in store.around(first, last)), default=0)
        if not shared:
            break
        places.append(shared)
        beginning = key.name[: _start(key.name, shared)]
        first = ObjectName(key.namespace, beginning)
        last = ObjectName(key.namespace, beginning + _LAST)
    return places


def _shared(one: ObjectName, other: ObjectName) -> int:
    """How many first letters two names of one namespace have in common."""
    if one.namespace != other.namespace:
        return 0
    pairs = zip(one.name, other.name, strict=False)
    differing = (place for place, (a, b) in enumerate(pairs) if a != b)
    return next(differing, min(len(one.name), len(other.name)))
