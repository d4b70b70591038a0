"""What may be written as SOURCE on the command line, before anything is connected.

`embedded`, `in-cluster`, `context:<kubeconfig context>` or `url:<http(s) base URL>`; a URL may
carry a bearer token: `url:https://TOKEN@HOST`.
"""

from __future__ import annotations

import re
from enum import StrEnum
from urllib.parse import unquote, urlsplit

import msgspec

FORMS = "embedded, in-cluster, context:<kubeconfig context> or url:<http(s) base URL>"
MAX_SHOWN = 100  # characters of a wrong SOURCE that a message repeats
_URL = re.compile(r"(https?://)(?:([^/@\s?#]+)@)?([^/@\s?#]+[^\s?#]*)")


class SourceKind(StrEnum):
    """Where to look for a cluster."""

    EMBEDDED = "embedded"
    IN_CLUSTER = "in-cluster"
    CONTEXT = "context"
    URL = "url"


class Source(msgspec.Struct, frozen=True):
    """One SOURCE; `value` is the context or the URL without its token, else empty. Its text and
    its repr leave the token out.
    """

    kind: SourceKind
    value: str = ""
    token: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}" if self.value else str(self.kind)

    def __repr__(self) -> str:
        return f"Source({str(self)!r})"


def parse_source(text: str) -> Source:
    """The SOURCE that is written here. Raises ValueError, which says what is allowed."""
    word, colon, value = text.strip().partition(":")
    if word in (SourceKind.EMBEDDED, SourceKind.IN_CLUSTER) and not colon:
        return Source(SourceKind(word))
    if word == SourceKind.CONTEXT and value:
        return Source(SourceKind.CONTEXT, value)
    if word == SourceKind.URL and (url := _URL.fullmatch(value)):
        scheme, given, rest = url.groups()
        token = unquote(given or "")
        if not _is_host(scheme + rest):
            raise ValueError("The host or the port of the URL cannot be: write url:https://HOST.")
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise ValueError("What stands before the @ of the URL cannot be sent as a token.")
        return Source(SourceKind.URL, scheme + rest.rstrip("/"), token)
    raise ValueError(f"{_shown(text)} is no source of a cluster: write {FORMS}.")


def _is_host(url: str) -> bool:
    """Whether a connection could be asked for. Python reads the port only when it is wanted."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _shown(text: str) -> str:
    """What was written, unless a token may be in it."""
    is_safe = not any(sign in text for sign in "@/?") and len(text) <= MAX_SHOWN
    return repr(text) if is_safe else "This"
