"""A holder as it is drawn: a host that may shrink, a tail that may not, a quiet id, a colour."""

from __future__ import annotations

import re
import zlib
from functools import lru_cache

import msgspec

from dashboard.parts.formatting import shortened
from leases.domain.holder_identity import split_holder

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


@lru_cache(8192)  # a timeline repeats a few names a thousand times
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
