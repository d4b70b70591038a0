"""Parse SOURCE of the command line, without connecting.

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
    EMBEDDED = "embedded"
    IN_CLUSTER = "in-cluster"
    CONTEXT = "context"
    URL = "url"


class ClusterSource(msgspec.Struct, frozen=True):
    """A parsed SOURCE; `value` is the context or the URL, if any.

    Its text and repr omit the token.
    """

    kind: SourceKind
    value: str = ""
    token: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}" if self.value else str(self.kind)

    def __repr__(self) -> str:
        return f"Source({str(self)!r})"


def parse_source(text: str) -> ClusterSource:
    """Parse a SOURCE. Raises ValueError, which lists what is allowed."""
    word, colon, value = text.strip().partition(":")
    if word in (SourceKind.EMBEDDED, SourceKind.IN_CLUSTER) and not colon:
        return ClusterSource(SourceKind(word))
    if word == SourceKind.CONTEXT and value:
        return ClusterSource(SourceKind.CONTEXT, value)
    if word == SourceKind.URL and (url := _URL.fullmatch(value)):
        scheme, given, rest = url.groups()
        token = unquote(given or "")
        if not _is_host(scheme + rest):
            raise ValueError("The URL has an invalid host or port: write url:https://HOST.")
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise ValueError("The text before the @ of the URL is no valid token.")
        return ClusterSource(SourceKind.URL, scheme + rest.rstrip("/"), token)
    raise ValueError(f"{_shown(text)} is no source of a cluster: write {FORMS}.")


def _is_host(url: str) -> bool:
    """Whether the URL has a usable host and port. Python checks the port only when it is read."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _shown(text: str) -> str:
    """Quote the input, unless it may contain a token."""
    is_safe = not any(sign in text for sign in "@/?") and len(text) <= MAX_SHOWN
    return repr(text) if is_safe else "This"
