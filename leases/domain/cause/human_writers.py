"""Programs with which people write Leases, by their field managers."""

from __future__ import annotations

import re

# kubectl names itself after its command (kubectl-edit); dashboards, scripts and curl leave the
# first word of their User-Agent.
_is_human = re.compile(
    r"kubectl(-.*)?|oc(-.*)?|k9s|lens.*|openlens.*|freelens.*|node-fetch|headlamp.*|octant.*|rancher"
    r"|dashboard|kubernetes-dashboard.*|mozilla|curl|wget|httpie|python-requests.*|python-httpx.*"
    r"|python-urllib.*|leaseboard.*|terraform.*|helm|ansible.*",
    re.IGNORECASE,
).fullmatch


def is_human_writer(manager: str) -> bool:
    """Whether people use a program with this field manager."""
    return bool(_is_human(manager))
