"""How names are drawn: a holder, a Lease in pieces; and in URLs."""

import hashlib
import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from functools import lru_cache
from urllib.parse import quote

import msgspec
from django.urls import reverse
from django.utils.http import RFC3986_SUBDELIMS
from msgspec.structs import replace

from dashboard.board import running_store
from dashboard.lists.url_parameters import MAX_TEXT
from dashboard.parts.formatting import shortened
from leases.domain.holder_identity import split_holder
from leases.domain.lease import ObjectName
from leases.tracking.store import Store

HUES = 8
# Kubernetes ends a pod's name with five characters (SafeEncodeString's letters) after its set's
# hash: they tell two pods of one set apart. Some holders add more after them.
_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
_POD_OF_SET = re.compile(rf"(.+-{_SAFE}{{6,10}})(-{_SAFE}{{5}})(-.+)?")
_POD = re.compile(rf"(.+)(-{_SAFE}{{5}})()")
_NODE_DOMAIN = re.compile(r"\.(?=[a-z])")
SHORT = 30
WHOLE = 18  # letters of a host that CSS need not cut
_END = 6  # letters that stay at the end of a name without a tail, such as a UUID
# Longer holders (an API server accepts a megabyte) are cut, not split, and not cached.
MAX_IDENTITY = 512
MAX_SHOWN = 160
_SAFE_IN_PATHS = f"{RFC3986_SUBDELIMS}~:@"


@lru_cache(maxsize=4096)
def cluster_path(page: str, cluster: str) -> str:
    """Return the path of a page of a cluster. Django looks for it through all patterns."""
    return reverse(page, args=[cluster])


def lease_url(cluster: str, key: ObjectName) -> str:
    """Return the path of a Lease's page. Names of Kubernetes need no escapes; others get them."""
    names = f"{quote(key.namespace, safe=_SAFE_IN_PATHS)}/{quote(key.name, safe=_SAFE_IN_PATHS)}"
    return f"{cluster_path('leases', cluster)}{names}/"


class HolderView(msgspec.Struct, frozen=True):
    """`identity` is `whole`, or cut to MAX_IDENTITY; `host`, `tail` and `id` are its parts."""

    identity: str
    host: str
    tail: str
    id: str
    hue: int
    whole: bool = True

    @property
    def ends(self) -> tuple[str, str]:
        """The part that CSS may cut, and the part that it may not."""
        if self.tail or len(self.host) <= WHOLE:
            return self.host, self.tail
        return self.host[:-_END], self.host[-_END:]

    @property
    def short(self) -> str:
        """The holder inside a sentence: without its id, at most SHORT characters."""
        name = self.host + self.tail
        if len(name) <= SHORT:
            return name
        tail = self.tail or self.host[-_END:]
        return f"{self.host[: SHORT - len(tail) - 1]}…{tail}"


def holder_view(identity: str | None) -> HolderView | None:
    """None for nobody."""
    if not identity:
        return None
    return _in_parts(identity) if len(identity) <= MAX_IDENTITY else _cut(identity)


def beside(holder: HolderView | None, newer: HolderView | None) -> HolderView | None:
    """The holder in a hue of its own beside the one after it, as the Timeline draws the two."""
    if holder is None or newer is None or holder.identity == newer.identity:
        return holder
    return replace(holder, hue=holder.hue % HUES + 1) if holder.hue == newer.hue else holder


def shown_holder(identity: str) -> str:
    """The holder as text: at most MAX_IDENTITY characters, NUL as a visible symbol."""
    if len(identity) > MAX_IDENTITY:
        identity = f"{shortened(identity, MAX_SHOWN)}{_length(identity)}"
    return identity.replace("\0", "\N{SYMBOL FOR NULL}")


def _cut(identity: str) -> HolderView:
    whole, length = shown_holder(identity), _length(identity)
    return HolderView(whole, whole.removesuffix(length), "", length, _hue(identity), whole=False)


def _length(identity: str) -> str:
    return f" ({len(identity):,} characters)"


@lru_cache(512)  # a timeline repeats a few names a thousand times
def _in_parts(raw: str) -> HolderView:
    identity = shown_holder(raw)
    parts = split_holder(identity)
    host = parts.host or identity
    rest = identity[len(host) :] if identity.startswith(host) else ""
    if not rest and host != identity:
        host = identity  # the host is not in front (namespace/pod): show all
    tail = ""
    if found := _POD_OF_SET.fullmatch(host) or _POD.fullmatch(host):
        host, tail, rest = found[1], found[2], (found[3] or "") + rest
    elif (dot := _NODE_DOMAIN.search(host)) and not rest:
        host, rest = host[: dot.start()], host[dot.start() :]
    hue = _hue(parts.host or identity)
    return HolderView(identity, host, tail, rest, hue, whole=identity == raw)


def _hue(name: str) -> int:
    return zlib.crc32(name.encode()) % HUES + 1


# Each piece with whether CSS may cut it. A short name is one piece, which it may not.
ShownName = tuple[tuple[str, bool], ...]

WHOLE_NAME = 18  # letters: a name up to this length is never cut
_NAME_END = 6  # letters that stay at the end
_BEFORE, _AFTER = 3, 2  # letters that stay around the first one that differs
_FEWEST = 4  # letters that are worth an ellipsis
_HEAD = 7  # letters; a shorter beginning is not cut
_BRANCHES = 2  # places to keep, such as the zone and the number of `worker-eu-1-7`
_LAST = "\U0010ffff"  # sorts after every letter of a name


def shown_name(cluster: str, key: ObjectName, domain: str = "") -> ShownName:
    """The name without `domain`, cut where the names beside it in the list of the cluster agree."""
    store = running_store(cluster)
    places: list[int] = []
    if store and len(key.name) > WHOLE_NAME:
        places = _branches(key.name, _siblings(store, key.namespace))
    return cut_name(key.name.removesuffix(domain), places)


def cut_name(name: str, branches: Iterable[int] = ()) -> ShownName:
    """Keep the end of a long name, and some letters where its siblings begin to differ."""
    if len(name) <= WHOLE_NAME:
        return ((name, False),)
    end = len(name) - _NAME_END
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


def told_apart(names: Iterable[str]) -> dict[str, ShownName]:
    """Names of one list, cut where each begins to differ from those most like it."""
    every = sorted(set(names))

    def around(first: str, last: str) -> list[str]:
        before, after = bisect_left(every, first), bisect_right(every, last)
        return [*every[max(0, before - 1) : before], *every[after : after + 1]]

    return {name: cut_name(name, _branches(name, around)) for name in every}


def _start(name: str, place: int) -> int:
    """Where the letters begin that are kept for a difference at `place`: with its word, if near."""
    return max(place - _BEFORE, *(name.rfind(mark, 0, place) for mark in "-."), 0)


def _branches(name: str, around: Callable[[str, str], Iterable[str]]) -> list[int]:
    """How many first letters it shares with its nearest siblings, and with those beyond.

    `around` gives the siblings next to a range of names.
    """
    places: list[int] = []
    first = last = name
    while len(places) < _BRANCHES:
        shared = max((_shared_letters(name, other) for other in around(first, last)), default=0)
        if not shared:
            break
        places.append(shared)
        first = name[: _start(name, shared)]
        last = first + _LAST
    return places


def _siblings(store: Store, namespace: str) -> Callable[[str, str], Iterable[str]]:
    def around(first: str, last: str) -> list[str]:
        found = store.around(ObjectName(namespace, first), ObjectName(namespace, last))
        return [other.name for other in found if other.namespace == namespace]

    return around


def _shared_letters(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    differing = (place for place, (a, b) in enumerate(pairs) if a != b)
    return next(differing, min(len(one), len(other)))


_DIGEST = "sha256:"
_PART = 200  # characters that are enough to find a holder


def holder_parameter(name: str) -> str:
    """The value of `?holder=` for this identity or host."""
    return name if _bearable(name) else _digest(name)


# A name that a path bears as it is; `holders/pods/` is another page.
_in_a_path = re.compile(r"(?!\.+$|pods$)[\w.:@+~-]{1,250}", re.ASCII).fullmatch


def holder_in_path(name: str) -> str:
    """The part of a path that names this holder: itself, or a digest of it."""
    return name if _in_a_path(name) else _digest(name)


def is_digest(named: str) -> bool:
    return named.startswith(_DIGEST)


def part_of(name: str) -> str:
    """The value of `?q=` that finds this identity or host: all of it, or its beginning."""
    return name.split("\0")[0][:_PART].strip()


def is_held_by(wanted: str) -> Callable[[str], bool]:
    """A test whether an identity, or the host in it, is the one of `?holder=`."""
    if wanted.startswith(_DIGEST):
        return lambda identity: any(
            not _bearable(name) and _digest(name) == wanted for name in _names(identity)
        )
    return lambda identity: wanted in identity and wanted in _names(identity)


def _names(identity: str) -> tuple[str, ...]:
    host = split_holder(identity).host
    return (identity,) if host is None else (identity, host)


def _bearable(name: str) -> bool:
    return len(name) <= MAX_TEXT and "\0" not in name and name == name.strip()


def _digest(name: str) -> str:
    return _DIGEST + hashlib.sha256(name.encode()).hexdigest()
