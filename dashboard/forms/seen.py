"""What a drawn form showed: the term, and a digest of each value.

Digests, because a holder or an annotation may be long and odd: a field whose digest differs is one
that the person changed. They compare texts as a browser sends them back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from leases.domain.edit.term import term_of
from leases.domain.lease import Lease
from leases.wire.microtime import format_microtime

LONGEST = 16  # hex digits of a digest
MAX_PAIRS = 150  # labels or annotations in a form; Django accepts 1,000 fields


class Seen(msgspec.Struct, frozen=True):
    """`labels` and `annotations`: digest of the key to digest of the value."""

    term: str
    fields: dict[str, str]
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @property
    def text(self) -> str:
        """For the hidden field of the form."""
        return msgspec.json.encode(self).decode()


def read_seen(text: str) -> Seen | None:
    """None if the text is not what `Seen.text` wrote."""
    try:
        return msgspec.json.decode(text.encode(errors="replace"), type=Seen)
    except msgspec.MsgspecError:
        return None


def seen_of(lease: Lease) -> Seen:
    return Seen(
        term=term_of(lease),
        fields={name: digest(text) for name, text in shown_fields(lease).items()},
        labels=_of_pairs(lease.metadata.labels, "labels"),
        annotations=_of_pairs(lease.metadata.annotations, "annotations"),
    )


def shown_fields(lease: Lease) -> dict[str, str]:
    """The spec as the fields of a form show it; "" for what is not set."""
    spec = lease.spec
    values = {
        "holder_identity": lease.holder,
        "acquire_time": spec.acquire_time and format_microtime(spec.acquire_time),
        "renew_time": spec.renew_time and format_microtime(spec.renew_time),
        "duration_seconds": spec.lease_duration_seconds,
        "transitions": spec.lease_transitions,
        "strategy": spec.strategy,
        "preferred_holder": spec.preferred_holder,
    }
    return {name: "" if value is None else str(value) for name, value in values.items()}


def digest(text: str, *, lines: bool = False) -> str:
    """Digest a text as a browser sends it back: NUL replaced, line breaks kept if it has `lines`
    and left out otherwise.
    """
    sent = text.replace("\0", "\ufffd")
    sent = one_line_break(sent) if lines else sent.replace("\r", "").replace("\n", "").strip()
    return hashlib.sha256(sent.encode(errors="surrogatepass")).hexdigest()[:LONGEST]


def one_line_break(text: str) -> str:
    """With line feeds alone, as a browser's script reads a <textarea>."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def digest_of_value(part: str, value: str) -> str:
    """Digest a value of "labels" or "annotations": only an annotation may have several lines."""
    return digest(value, lines=part == "annotations")


def _of_pairs(pairs: Mapping[str, str] | None, part: str) -> dict[str, str]:
    return {digest(key): digest_of_value(part, value) for key, value in (pairs or {}).items()}
