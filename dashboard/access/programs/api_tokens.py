"""API tokens: random, kept as digests, each of one person. A token may read what its role reads
and its person still may."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import Error

from dashboard.access.roles import READ_SECURITY_LOG, VIEW
from dashboard.access.tokens import digest_of, is_token_of, new_token
from leases.models import ApiToken

logger = logging.getLogger(__name__)

PREFIX = "lbt_"  # lets scanners for secrets find a token, and the log cut it out
MAX_DAYS = 3650
NOTE_EVERY = timedelta(minutes=1)
MAKE = "Make a new one under /tokens/."
UNKNOWN = f"This API token is not known here: copy it whole. {MAKE}"
INACTIVE = "The account of this API token is deactivated. Ask an admin."
MAY_NOT_READ = "The person of this API token may not read Leases. Ask an admin."


def create(
    *, name: str, user: User, role: str, now: datetime, expires_at: datetime
) -> tuple[ApiToken, str]:
    """Make a token. Returns it with its text, which is stored nowhere."""
    text = PREFIX + new_token()
    token = ApiToken.objects.create(
        name=name,
        user=user,
        role=role,
        digest=digest_of(text),
        created_at=now,
        expires_at=expires_at,
    )
    return token, text


def roles_for(user: User) -> list[str]:
    """The roles that the tokens of this person can have."""
    needed = {"operator": VIEW, "admin": READ_SECURITY_LOG}
    return [role for role, permission in needed.items() if user.has_perm(permission)]


def find(text: str) -> ApiToken | None:
    """The token of this text, whether it still opens or not."""
    token = ApiToken.objects.select_related("user").filter(digest=digest_of(text)).first()
    return token if token is not None and is_token_of(text, token.digest) else None


def why_closed(token: ApiToken | None, *, now: datetime) -> str | None:
    """Why this token opens nothing, in a sentence; None: it opens."""
    if token is None:
        return UNKNOWN
    if token.revoked_at is not None:
        return f"This API token was revoked on {token.revoked_at:%Y-%m-%d at %H:%M} UTC. {MAKE}"
    if token.expires_at <= now:
        return f"This API token expired on {token.expires_at:%Y-%m-%d at %H:%M} UTC. {MAKE}"
    if not token.user.is_active:
        return INACTIVE
    return None if token.user.has_perm(VIEW) else MAY_NOT_READ


def note_use(tokens: Collection[ApiToken], *, now: datetime) -> None:
    """Write when these were last used, once a minute."""
    due = [
        token.pk
        for token in tokens
        if token.last_used_at is None or token.last_used_at <= now - NOTE_EVERY
    ]
    try:
        if due:
            ApiToken.objects.filter(pk__in=due).update(last_used_at=now)
    except Error as error:
        logger.info("When API tokens were used cannot be written just now: %s", error)


def revoke(number: int, *, now: datetime) -> bool:
    """Let the token open nothing from now on. Whether it opened until now."""
    open_one = ApiToken.objects.filter(pk=number, revoked_at=None).first()
    if open_one is None:
        return False
    open_one.revoked_at = now
    open_one.save(update_fields=["revoked_at"])  # tells dashboard.access.rights.right_changes
    return True
