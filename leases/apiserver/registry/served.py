"""Which resources a server has."""

from __future__ import annotations

from leases.apiserver.registry.core.events import CORE_EVENTS, EVENTS
from leases.apiserver.registry.core.nodes import NODES
from leases.apiserver.registry.core.pods import PODS, SERVICES
from leases.apiserver.resources import CANDIDATES, CLE_GATE, LEASES, NAMESPACES, Resource


def served(gates: frozenset[str]) -> tuple[Resource, ...]:
    """The resources of a server with these feature gates on."""
    candidates = (CANDIDATES,) if CLE_GATE in gates else ()
    return (LEASES, *candidates, CORE_EVENTS, NAMESPACES, NODES, PODS, SERVICES, EVENTS)
