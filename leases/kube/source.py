"""What may be written as SOURCE on the command line, before anything is connected.

`embedded`, `in-cluster`, `context:<kubeconfig context>` or `url:<http(s) base URL>`; a URL may
carry a bearer token: `url:https://TOKEN@HOST`.
"""

from __future__ import annotations

import re
from enum import StrEnum
from urllib.parse import unquote

import msgspec

FORMS = "embedded, in-cluster, context:<kubeconfig context> or url:<http(s) base URL>"
_URL = re.compile(r"(https?://)(?:([^/@\s?#]+)@)?([^/@\s?#]+[^\s?#]*)")


class SourceKind(StrEnum):
    """Where to look for a cluster."""

    EMBEDDED = "embedded"
    IN_CLUSTER = "in-cluster"
    CONTEXT = "context"
    URL = "url"


class Source(msgspec.Struct, frozen=True):
    """One SOURCE; `value` is the context or the URL without its token, else empty."""

    kind: SourceKind
    value: str = ""
    token: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}" if self.value else str(self.kind)


def parse_source(text: str) -> Source:
    """The SOURCE that is written here. Raises ValueError, which says what is allowed."""
    word, colon, value = text.strip().partition(":")
    if word in (SourceKind.EMBEDDED, SourceKind.IN_CLUSTER) and not colon:
        return Source(SourceKind(word))
    if word == SourceKind.CONTEXT and value:
        return Source(SourceKind.CONTEXT, value)
    if word == SourceKind.URL and (url := _URL.fullmatch(value)):
        scheme, token, rest = url.groups()
        return Source(SourceKind.URL, scheme + rest.rstrip("/"), unquote(token or ""))
    raise ValueError(f"{text!r} is no source of a cluster: write {FORMS}.")
