"""Parse the clusters of the command line and of LEASEBOARD_CLUSTERS: NAME=SOURCE."""

from __future__ import annotations

import re
from dataclasses import dataclass

from leases.kube.cluster_source import FORMS, ClusterSource, SourceKind, parse_source

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?")

_HARMLESS = re.compile(r"[\w.= -]{0,64}")


@dataclass(frozen=True)
class ClusterSpec:
    """One Lease API to watch: its short name in URLs and rows, and its source."""

    name: str
    source: ClusterSource


def parse_cluster(text: str) -> ClusterSpec:
    """Parse NAME=SOURCE. Raises ValueError, which says how to write it."""
    name, equals, source = text.strip().partition("=")
    if not equals or not source:
        raise ValueError(f"write {_shown(text, 'each')} as NAME=SOURCE, with SOURCE {FORMS}")
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"the cluster name {_shown(name, 'before =')} must be 1 to 32 of a-z, 0-9 and -, "
            "not at either end"
        )
    try:
        return ClusterSpec(name, parse_source(source))
    except ValueError as error:
        raise ValueError(f"cluster {name}: {error}") from None


def _shown(text: str, otherwise: str) -> str:
    """The text, unless it could contain a token: then `otherwise`."""
    return repr(text) if _HARMLESS.fullmatch(text) else otherwise


def parse_clusters(text: str) -> tuple[ClusterSpec, ...]:
    """Parse NAME=SOURCE[,NAME=SOURCE...]. Raises ValueError."""
    specs = tuple(parse_cluster(part) for part in text.split(",") if part.strip())
    return check_clusters(specs)


def check_clusters(specs: tuple[ClusterSpec, ...]) -> tuple[ClusterSpec, ...]:
    """Return the clusters. Raises ValueError for none, and for two of one name."""
    names = [spec.name for spec in specs]
    if not names:
        raise ValueError("name at least one cluster, such as embedded=embedded")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"the cluster name {twice[0]!r} is given twice; give each its own")
    if sum(spec.source.kind is SourceKind.EMBEDDED for spec in specs) > 1:
        raise ValueError("there is one embedded Lease API; only one cluster can be embedded")
    return specs
