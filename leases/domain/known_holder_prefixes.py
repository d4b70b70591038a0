"""Programs known to write a fixed word before the host in holderIdentity: data, one line of source
each.

Only the word is taken off; what is left is judged as any other identity, for such a program may put
a UUID where it knows no pod or node.
"""

from __future__ import annotations

import msgspec


class KnownHolder(msgspec.Struct, frozen=True, kw_only=True):
    """One form of identity: `word` stands before what names the host."""

    word: str
    source: str  # who writes it, and where that can be read


KNOWN_HOLDERS: tuple[KnownHolder, ...] = (
    KnownHolder(
        word="elastic-agent-leader-",
        source="Elastic Agent, before its pod or agent id: elastic/elastic-agent "
        "internal/pkg/composable/providers/kubernetesleaderelection",
    ),
    KnownHolder(
        word="beats-leader-",
        source="Metricbeat and the other Beats, before their node or a UUID: elastic/beats "
        "libbeat/autodiscover/providers/kubernetes",
    ),
)


def without_known_word(identity: str) -> str:
    """The identity without its program's fixed word; unchanged when that is all of it."""
    for known in KNOWN_HOLDERS:
        if rest := identity.removeprefix(known.word):
            identity = rest
    return identity
