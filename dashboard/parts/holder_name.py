"""A holder as it is drawn: a host that may shrink, a tail that never does, a quiet id, a hue of its
own.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache

import msgspec

from dashboard.parts.formatting import shortened
from leases.domain.holder import split_holder

HUES = 8
# Kubernetes names a pod with five characters of its own after its set's hash (SafeEncodeString's
# letters): they tell two pods of one set apart. Some holders go on after them.
_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
_POD_OF_SET = re.compile(rf"(.+-{_SAFE}{{6,10}})(-{_SAFE}{{5}})(-.+)?")
_POD = re.compile(rf"(.+)(-{_SAFE}{{5}})()")
_NODE_DOMAIN = re.compile(r"\.(?=[a-z])")
SHORT = 30
_END = 6  # letters kept of the end of a name without a tail, such as a UUID
# Longer holders than any component writes are not taken apart, are shown cut, and are not kept in
# memory: an API server accepts a megabyte.
MAX_IDENTITY = 512
MAX_SHOWN = 160


class HolderView(msgspec.Struct, frozen=True):
    """`identity` is the whole, cut where it is longer than MAX_IDENTITY; `host`, `tail` and `id`
    are its parts in order; `hue` is 1 to 8.
    """

    identity: str
    host: str
    tail: str
    id: str
    hue: int

    @property
    def short(self) -> str:
        """The holder inside a sentence: without its id, and never so long that it hides the
        sentence.
        """
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


def shown_holder(identity: str) -> str:
    """The holder inside a text: no longer than MAX_IDENTITY, with each NUL to be seen."""
    if len(identity) > MAX_IDENTITY:
        identity = f"{shortened(identity, MAX_SHOWN)}{_length(identity)}"
    return identity.replace("\0", "\N{SYMBOL FOR NULL}")


def _cut(identity: str) -> HolderView:
    whole, length = shown_holder(identity), _length(identity)
    return HolderView(whole, whole.removesuffix(length), "", length, _hue(identity))


def _length(identity: str) -> str:
    return f" ({len(identity):,} characters)"


@lru_cache(8192)  # a timeline names the same few a thousand times
def _in_parts(identity: str) -> HolderView:
    identity = shown_holder(identity)
    parts = split_holder(identity)
    host = parts.host or identity
    rest = identity[len(host) :] if identity.startswith(host) else ""
    if not rest and host != identity:
        host = identity  # the host is not at the front (namespace/pod): show what stands there
    tail = ""
    if found := _POD_OF_SET.fullmatch(host) or _POD.fullmatch(host):
        host, tail, rest = found[1], found[2], (found[3] or "") + rest
    elif (dot := _NODE_DOMAIN.search(host)) and not rest:
        host, rest = host[: dot.start()], host[dot.start() :]
    return HolderView(identity, host, tail, rest, _hue(parts.host or identity))


def _hue(name: str) -> int:
    return zlib.crc32(name.encode()) % HUES + 1
