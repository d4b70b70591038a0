"""Links that open walls without signing in, and when links and people were last seen.

Each link is a random token. The database keeps its digest alone, so nobody can make a link from
what is stored, and a database that was made anew knows no link of before.

Its token lies in the data directory beside the other keys. The database keeps the digest alone.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import Error
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

from dashboard import clock
from dashboard.access.kept_secrets import digest_of, is_token_of, new_token
from dashboard.access.known_rights import KNOWN, WallRight, ask
from leases.history.database import turn
from leases.models import Person, WallLink, WallScreen

PARAMETER = "key"
MAX_AT_START = 500  # links that a process knows before they were used
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
    namespace: str = "",
    kinds: Iterable[str] = (),
    zone: str = "UTC",
    fleet: bool = False,
) -> tuple[WallLink, str]:
    """Make a link. Returns it with its token, which is stored nowhere."""
    token = new_token()
    link = WallLink.objects.create(
        name=name,
        digest=digest_of(token),
        clusters=list(clusters),
        namespace=namespace,
        kinds=list(kinds),
        zone=zone,
        fleet=fleet,
        created_by=created_by,
        created_at=now,
        expires_at=expires_at,
    )
    return link, token


def path_of(token: str, *, cluster: str) -> str:
    return f"{wall_path(cluster)}?{urlencode({PARAMETER: token})}"


def wall_path(cluster: str) -> str:
    return reverse("wall", args=[cluster]) if cluster else reverse("fleet_wall")


def right_of(link: WallLink, cluster: str, screen_id: int | None = None) -> WallRight:
    return WallRight(link.pk, cluster, () if cluster else tuple(link.clusters), screen_id)


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
    if cluster not in link.walls:
        return OTHER_CLUSTER
    return None


def open_link(token: str, *, cluster: str) -> WallLink:
    """The link, if it opens this cluster's wall now. Raises WallLinkClosed."""
    by = "wall", digest_of(token), cluster
    return ask(by, partial(_open, token, cluster))


def know_links() -> None:
    """Know every link that opens walls, before a database that stops is asked for one."""
    now = clock.now()
    for link in WallLink.objects.order_by("-pk")[:MAX_AT_START]:
        for cluster in link.walls:
            if link.digest and why_closed(link, cluster=cluster, now=now) is None:
                _know(link, link.digest, cluster)


def _know(link: WallLink, digest: str, cluster: str) -> None:
    KNOWN.note(("wall", digest, cluster), right_of(link, cluster), link, link.expires_at)


def _open(token: str, cluster: str) -> WallLink:
    link = find(token)
    if link is None and ":" in token:  # earlier versions signed a number: 1:SIGNATURE
        raise WallLinkClosed(OUTDATED)
    reason = why_closed(link, cluster=cluster, now=clock.now())
    if link is None or reason is not None:
        raise WallLinkClosed(reason)
    _know(link, digest_of(token), cluster)
    return link


def revoke(number: int, *, now: datetime) -> None:
    """Let the link open nothing from now on. The first time counts."""
    WallLink.objects.filter(pk=number, revoked_at=None).update(revoked_at=now)


def _when(moment: datetime, now: datetime) -> str:
    day = "" if moment.date() == now.date() else f"on {moment:%Y-%m-%d} "
    return f"{day}at {moment:%H:%M} UTC"


FILE_NAME = "wall_link"
NAME = "wall"
CREATED_BY = "serve"


def printed_wall_link(
    data: Path, clusters: Sequence[str], *, now: datetime
) -> tuple[str, str] | None:
    """A cluster and a token that opens its wall. Makes a new link if the kept one opens none.

    The kept link is never widened: whoever has it opens the clusters that it was made for. A
    database may outlive the data directory: then the first link was printed once, and there is None
    to print, or each start of a container would leave one more link that opens for ever.
    """
    path = data / FILE_NAME
    with turn("wall link"):  # replicas that start at once choose different names
        kept = kept_token(data)
        link = find(kept) if kept else None
        for cluster in clusters:
            if why_closed(link, cluster=cluster, now=now) is None:
                return cluster, kept
        made = WallLink.objects.filter(created_by=CREATED_BY).values_list("clusters", flat=True)
        if not path.exists() and any(set(clusters).intersection(one) for one in made):
            return None
        _, token = create(name=_free_name(), clusters=clusters, created_by=CREATED_BY, now=now)
    _keep(path, token)
    return clusters[0], token


class BadLinkFile(Exception):
    """The kept link cannot be used; the text says what to do."""


def kept_token(data: Path) -> str:
    """The token of the kept link; empty where none is kept. Raises BadLinkFile."""
    path = data / FILE_NAME
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise _bad_file(path, "read", error) from error


def _bad_file(path: Path, what: str, error: OSError | UnicodeDecodeError) -> BadLinkFile:
    reason = error.strerror if isinstance(error, OSError) else "it is not text"
    return BadLinkFile(
        f"The wall link {path} cannot be {what} ({str(reason).lower()}): put a good copy in its "
        "place, or remove it; then a new one is made, and the old one opens until you revoke it."
    )


def _free_name() -> str:
    taken = set(WallLink.objects.filter(revoked_at=None).values_list("name", flat=True))
    names = [NAME, *(f"{NAME} {number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)


def _keep(path: Path, token: str) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(f"{token}\n")
    except OSError as error:
        raise _bad_file(path, "written", error) from error


SEEN: set[int] = set()  # ids of users since the last write


class LastSeen:
    """Middleware. Asks nothing of the database: a page that needs no user notes none."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self._get_response(request)
        user = request.user if hasattr(request, "by_proxy") else _looked_up(request)
        if user is not None and user.is_authenticated:
            SEEN.add(user.pk)
        return answer


def _looked_up(request: HttpRequest) -> User | None:
    return getattr(request, "_cached_user", None)


def write_seen(ids: Collection[int], now: datetime) -> None:
    """Write it for those accounts that there still are."""
    known = User.objects.filter(pk__in=ids)
    Person.objects.bulk_create(
        [Person(user=user, last_seen_at=now) for user in known],
        update_conflicts=True,
        unique_fields=["user"],
        update_fields=["last_seen_at"],
    )


logger = logging.getLogger(__name__)

WRITE_SECONDS = 60.0


class LinkUse:
    """The links and screens that were used since the last write."""

    def __init__(
        self,
        in_thread: Callable[[Callable[[], int]], Awaitable[int]],
        open_now: Callable[[], Collection[WallRight]],
    ) -> None:
        self._in_thread = in_thread
        self._open_now = open_now
        self._used: set[WallRight] = set()

    def note(self, right: WallRight) -> None:
        """Somebody opened a wall by this right. Any thread may call this."""
        self._used.add(right)

    async def run(self) -> None:
        """Write again and again, until cancelled."""
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await self.write()

    async def write(self) -> None:
        """What cannot be written now, as on a full disk, is written with the next."""
        used, self._used = self._used, set()
        used = used.union(self._open_now())
        seen = set(SEEN)
        SEEN.difference_update(seen)
        if not used and not seen:
            return
        try:
            await self._in_thread(partial(_write, used, seen, clock.now()))
        except Exception as error:
            self._used |= used
            SEEN.update(seen)
            if not isinstance(error, Error):
                raise
            logger.info("When wall links were used cannot be written just now: %s", error)


def _write(used: Collection[WallRight], seen: Collection[int], now: datetime) -> int:
    write_seen(seen, now)
    screens = {right.screen_id for right in used if right.screen_id is not None}
    if screens:
        WallScreen.objects.filter(pk__in=screens).update(last_seen_at=now)
    links = {right.link_id for right in used}
    return WallLink.objects.filter(pk__in=links).update(last_used_at=now)
