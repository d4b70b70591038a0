"""Screens that open the walls of a link by a short code, which a TV remote can type.

An admin asks for the code, somebody types it on the screen, and the screen's browser gets a cookie
of its own. The cookie opens the walls of that link for as long as the link opens them, and nothing
else. The code opens one screen, once, for some minutes.
"""

import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpResponseBase

from dashboard import clock
from dashboard.access.kept_secrets import digest_of, digest_of_code, new_token
from dashboard.access.known_rights import KNOWN, ask
from dashboard.access.links import MAX_AT_START, WallLinkClosed, right_of, wall_path, why_closed
from leases.models import WallLink, WallScreen

ALPHABET = "ACDEFGHJKMNPQRTVWXY34679"  # nothing that looks like another on a screen far away
LENGTH = 8
LASTS = timedelta(minutes=10)
COOKIE = f"leaseboard_screen_{settings.BOARD_MARK}"
COOKIE_SECONDS = 400 * 24 * 3600  # browsers keep none for longer; each visit begins it anew
PARAMETER = "screen"  # in the address of a wall: the cookie opens it
ENDED = "An admin ended this screen. Type a new code to open it again."
NO_SCREEN = "This screen is not known here any more. Type a new code."


def make_code(link: WallLink, now: datetime) -> str:
    """A code for one screen of this link. It ends the codes of before that nobody has typed."""
    unused = WallScreen.objects.filter(digest=None)
    unused.filter(link=link).delete()
    unused.filter(code_ends_at__lte=now).delete()
    code = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
    WallScreen.objects.create(link=link, code_digest=digest_of_code(code), code_ends_at=now + LASTS)
    return code


def redeem(typed: str, now: datetime, address: str = "") -> tuple[WallLink, str] | None:
    """The link of this code and the secret of a new screen, which is seen from now on at this
    address; None if the code opens nothing.
    """
    code = "".join(filter(str.isalnum, typed.upper()))
    unused = WallScreen.objects.filter(digest=None, code_digest=digest_of_code(code))
    found = unused.filter(code_ends_at__gt=now).select_related("link").first()
    if found is None or not is_open(found.link, now):
        return None
    token = new_token()
    # Of two screens that redeem at once, one finds no row without a digest.
    seen = {"redeemed_at": now, "last_seen_at": now, "address": address}
    if not unused.update(digest=digest_of(token), **seen):
        return None
    return found.link, token


def is_open(link: WallLink, now: datetime) -> bool:
    return any(why_closed(link, cluster=one, now=now) is None for one in link.walls)


def open_screen(token: str | None, cluster: str | None = None) -> WallScreen:
    """The screen with this cookie, if its link opens this wall now, or any. Raises
    WallLinkClosed.
    """
    digest = digest_of(token or "")
    return ask(("screen", digest, cluster), partial(_open, digest, cluster))


def _open(digest: str, cluster: str | None) -> WallScreen:
    found = WallScreen.objects.filter(digest=digest).select_related("link").first()
    if found is None:
        raise WallLinkClosed(NO_SCREEN)
    link = found.link
    opened = cluster if cluster is not None else next(iter(link.walls), "")
    reason = why_closed(link, cluster=opened, now=clock.now())
    if reason is not None:
        raise WallLinkClosed(reason)
    right = right_of(link, opened, found.pk)
    KNOWN.note(("screen", digest, cluster), right, found, link.expires_at)
    return found


def know_screens() -> None:
    """Know the screens that open walls, before a database that stops is asked for one."""
    redeemed = WallScreen.objects.exclude(digest=None).select_related("link").order_by("-pk")
    now = clock.now()
    for screen in redeemed[:MAX_AT_START]:
        if screen.digest and is_open(screen.link, now):
            for cluster in (None, *screen.link.walls):
                _open(screen.digest, cluster)


def keep_cookie(answer: HttpResponseBase, token: str) -> None:
    answer.set_cookie(
        COOKIE,
        token,
        max_age=COOKIE_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def path_of(cluster: str, link: WallLink) -> str:
    """The address of a wall on the link's screens, with the filter that the link carries."""
    shown: Iterable[tuple[str, str]] = [
        (PARAMETER, "1"),
        *([("namespace", link.namespace)] if link.namespace else []),
        *(("kind", kind) for kind in link.kinds),
    ]
    return f"{wall_path(cluster)}?{urlencode(list(shown))}"
