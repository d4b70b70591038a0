"""The clusters of one process, as written on the command line: NAME=SOURCE."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?")


@dataclass(frozen=True)
class ClusterSpec:
    """One Lease API to watch: its short name in URLs and rows, and where it is."""

    name: str
    source: str


def parse_cluster(text: str) -> ClusterSpec:
    """NAME=SOURCE, or ValueError with the form that is wanted."""
    name, equals, source = text.strip().partition("=")
    if not equals or not source:
        raise ValueError(
            f"write {text!r} as NAME=SOURCE, with SOURCE embedded, in-cluster, "
            "context:CONTEXT or url:http(s)://HOST"
        )
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"the cluster name {name!r} must be 1 to 32 of a-z, 0-9 and -, not at either end"
        )
    check_source(source)
    return ClusterSpec(name, source)


def check_source(source: str) -> None:
    """Raise ValueError unless the source has one of the four forms."""
    rest = source.partition(":")[2]
    good = (
        source in ("embedded", "in-cluster")
        or (source.startswith("context:") and rest)
        or re.fullmatch(r"url:https?://[^/\s?#]+[^\s?#]*", source)
    )
    if not good:
        raise ValueError(
            f"the source {source!r} must be embedded, in-cluster, context:CONTEXT "
            "or url:http(s)://HOST"
        )


def parse_clusters(text: str) -> tuple[ClusterSpec, ...]:
    """NAME=SOURCE[,NAME=SOURCE...]; names must differ, and there must be at least one."""
    specs = tuple(parse_cluster(part) for part in text.split(",") if part.strip())
    return check_clusters(specs)


def check_clusters(specs: tuple[ClusterSpec, ...]) -> tuple[ClusterSpec, ...]:
    """The same clusters, or ValueError when there is none or two share a name."""
    names = [spec.name for spec in specs]
    if not names:
        raise ValueError("name at least one cluster, such as embedded=embedded")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"the cluster name {twice[0]!r} is given twice; give each its own")
    if sum(spec.source == "embedded" for spec in specs) > 1:
        raise ValueError("there is one embedded Lease API; only one cluster can be embedded")
    return specs
