"""Feature gates of the embedded Lease API, in the syntax of kube-apiserver."""

from __future__ import annotations

from argparse import ArgumentTypeError

from leases.apiserver.resources import CLE_GATE

GATES = (CLE_GATE,)
HELP = f"of the embedded API, as kube-apiserver's; known: {', '.join(GATES)}"


def parse_gates(text: str) -> frozenset[str]:
    """The gates that are on. Raises ArgumentTypeError, which says what may be written."""
    found = set()
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in GATES:
            raise ArgumentTypeError(f"{name!r} is no gate: write {', '.join(GATES)}")
        if value.lower() not in ("true", "false"):
            raise ArgumentTypeError(f"{part!r} is not clear: write {name}=true or {name}=false")
        if value.lower() == "true":
            found.add(name)
    return frozenset(found)
