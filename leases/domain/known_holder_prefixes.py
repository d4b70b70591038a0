"""Programs that write a fixed word before the host in holderIdentity, each with its source.

Only the word is removed. The rest is judged like any identity: it may be a UUID.
"""

from __future__ import annotations

import msgspec


class KnownHolder(msgspec.Struct, frozen=True, kw_only=True):
    """One form of identity: `word` comes before the host."""

    word: str
    source: str  # who writes it, and the proof


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
    """Return the identity without the fixed word, unless it is nothing else."""
    for known in KNOWN_HOLDERS:
        if rest := identity.removeprefix(known.word):
            identity = rest
    return identity
