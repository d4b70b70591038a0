"""Semantic versions by semver.org: what they must look like, and which comes first."""

from __future__ import annotations

import re

_NUMBER = r"(?:0|[1-9]\d*)"
_SHAPE = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?", re.ASCII
)
Version = tuple[int, int, int, tuple[str, ...]]
Precedence = tuple[tuple[int, int, int], bool, tuple[tuple[int, int, str], ...]]


def parse_version(text: str) -> Version | None:
    """A strict semantic version, without its build metadata; None when it is none."""
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        return None
    pre = tuple(shape[4].split(".")) if shape[4] else ()
    for part in pre:
        if not part or (part.isdecimal() and len(part) > 1 and part[0] == "0"):
            return None
    if shape[5] and "" in shape[5].split("."):
        return None
    return int(shape[1]), int(shape[2]), int(shape[3]), pre


def precedence(version: Version) -> Precedence:
    """For sorting: a pre-release comes before its release, numbers before words."""
    pre = version[3]
    parts = tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in pre)
    return version[:3], not pre, parts
