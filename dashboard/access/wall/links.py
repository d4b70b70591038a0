"""Links that open the walls of some clusters without signing in.

Each link is a random token. The database keeps its digest alone, so nobody can make a link from
what is stored, and a database that was made anew knows no link of before.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.urls import reverse

from dashboard import clock
from dashboard.access.tokens import digest_of, is_token_of, new_token
from leases.models import WallLink

PARAMETER = "key"
ASK = "Ask an admin for a new one."
UNKNOWN = f"There is no such wall link: it was deleted, or its address is not complete. {ASK}"
OUTDATED = f"An earlier version of Leaseboard made this wall link. It opens nothing any more. {ASK}"
OTHER_CLUSTER = "This wall link does not open this cluster. Ask an admin for one that does."


class WallLinkClosed(PermissionDenied):
    """A wall link that does not open this wall; the text says why."""


def create(
    *,
    name: str,
    clusters: Iterable[str],
    created_by: str,
    now: datetime,
    expires_at: datetime | None = None,
) -> tuple[WallLink, str]:
    """Make a link. Returns it with its token, which is stored nowhere."""
    token = new_token()
    link = WallLink.objects.create(
        name=name,
        digest=digest_of(token),
        clusters=list(clusters),
        created_by=created_by,
        created_at=now,
        expires_at=expires_at,
    )
    return link, token


def path_of(token: str, *, cluster: str) -> str:
    return f"{reverse('wall', args=[cluster])}?{urlencode({PARAMETER: token})}"


def find(token: str) -> WallLink | None:
    """The link of this token, whether it still opens or not."""
    link = WallLink.objects.filter(digest=digest_of(token)).first()
    return link if link is not None and is_token_of(token, link.digest or "") else None


def why_closed(link: WallLink | None, *, cluster: str, now: datetime) -> str | None:
    """Why this link does not open the cluster's wall, in a sentence; None: it does."""
    if link is None:
        return UNKNOWN
    if link.revoked_at is not None:
        return f"This wall link was revoked {_when(link.revoked_at, now)}. {ASK}"
    if link.expires_at is not None and link.expires_at <= now:
        return f"This wall link ended {_when(link.expires_at, now)}. {ASK}"
    if cluster not in link.clusters:
        return OTHER_CLUSTER
    return None


def open_link(token: str, *, cluster: str) -> WallLink:
    """The link, if it opens this cluster's wall now. Raises WallLinkClosed."""
    link = find(token)
    if link is None and ":" in token:  # earlier versions signed a number: 1:SIGNATURE
        raise WallLinkClosed(OUTDATED)
    reason = why_closed(link, cluster=cluster, now=clock.now())
    if link is None or reason is not None:
        raise WallLinkClosed(reason)
    return link


def revoke(number: int, *, now: datetime) -> None:
    """Let the link open nothing from now on. The first time counts."""
    WallLink.objects.filter(pk=number, revoked_at=None).update(revoked_at=now)


def _when(moment: datetime, now: datetime) -> str:
    day = "" if moment.date() == now.date() else f"on {moment:%Y-%m-%d} "
    return f"{day}at {moment:%H:%M} UTC"
