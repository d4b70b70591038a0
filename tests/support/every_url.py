"""Every path that the dashboard answers, read from its URL conf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from django.urls import URLPattern, URLResolver, get_resolver, reverse

ARGUMENTS = {
    "cluster": "a",
    "namespace": "kube-system",
    "name": "scheduler",
    "token": "nobody",
    "number": 1,
    "incident": "first",
    "host": "cp-1",
}


class Page(msgspec.Struct, frozen=True):
    """`name` is that of the URL conf, `path` has an argument for each of its parts."""

    name: str
    path: str


def consume(answer: Any) -> str:
    """The whole text of an answer; what a stream finds wrong is raised here."""
    parts = answer.streaming_content if answer.streaming else [answer.content]
    return b"".join(parts).decode()


def every_page() -> list[Page]:
    """Django's own admin is left out."""
    return [_page(pattern) for pattern in _patterns(get_resolver().url_patterns)]


def _patterns(entries: list[URLPattern | URLResolver]) -> Iterator[URLPattern]:
    for entry in entries:
        if isinstance(entry, URLPattern):
            yield entry
        elif entry.namespace != "admin":
            yield from _patterns(entry.url_patterns)


def _page(pattern: URLPattern) -> Page:
    assert pattern.name, f"{pattern} has no name"
    needed = _arguments(pattern.name)
    return Page(pattern.name, reverse(pattern.name, kwargs=needed))


def _arguments(name: str) -> dict[str, object]:
    """What the named path needs of ARGUMENTS; an argument that is not there yet is a KeyError."""
    ((_, names),) = get_resolver().reverse_dict.getlist(name)[0][0]
    return {argument: ARGUMENTS[argument] for argument in names}
