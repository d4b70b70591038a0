"""How another process ends each right, and what is said then."""

from __future__ import annotations

from typing import Any

from dashboard.access import api_tokens, links, rights
from tests.support.programs import people

# How another process ends a right: who had it, SQL, and what the page says.
USERS: dict[str, tuple[dict[str, Any], str, str]] = {
    "signed out": (
        people.READER,
        "DELETE FROM django_session WHERE session_key = :session",
        rights.SIGNED_OUT,
    ),
    "session over": (
        people.READER,
        "UPDATE django_session SET expire_date = '2026-01-01' WHERE session_key = :session",
        rights.SESSION_OVER,
    ),
    "deactivated": (
        people.READER,
        "UPDATE auth_user SET is_active = 0 WHERE id = :id",
        rights.DEACTIVATED,
    ),
    "password changed": (
        people.READER,
        "UPDATE auth_user SET password = 'other' WHERE id = :id",
        rights.PASSWORD_CHANGED,
    ),
    "group taken away": (
        people.READER,
        "DELETE FROM auth_user_groups WHERE user_id = :id",
        rights.MAY_NOT_READ,
    ),
    "permission of the group taken away": (
        people.READER,
        """DELETE FROM auth_group_permissions WHERE group_id IN
        (SELECT group_id FROM auth_user_groups WHERE user_id = :id)""",
        rights.MAY_NOT_READ,
    ),
    "own permission taken away": (
        people.BY_OWN_PERMISSION,
        "DELETE FROM auth_user_user_permissions WHERE user_id = :id",
        rights.MAY_NOT_READ,
    ),
    "deleted": (
        people.BY_OWN_PERMISSION,
        """DELETE FROM auth_user_user_permissions WHERE user_id = :id;
        DELETE FROM auth_user WHERE id = :id""",
        rights.DELETED,
    ),
}
WALLS = {
    "revoked": (
        "UPDATE leases_walllink SET revoked_at = '2026-11-20 03:12:40' WHERE id = :id",
        "This wall link was revoked on 2026-11-20 at 03:12 UTC. Ask an admin for a new one.",
    ),
    "ended": (
        "UPDATE leases_walllink SET expires_at = '2026-11-20 03:12:40' WHERE id = :id",
        "This wall link ended on 2026-11-20 at 03:12 UTC. Ask an admin for a new one.",
    ),
    "deleted": ("DELETE FROM leases_walllink WHERE id = :id", links.UNKNOWN),
    "for another cluster": (
        "UPDATE leases_walllink SET clusters = '[\"other\"]' WHERE id = :id",
        links.OTHER_CLUSTER,
    ),
}
TOKENS = {
    "revoked": (
        "UPDATE leases_apitoken SET revoked_at = '2026-11-20 03:12:40' WHERE id = :id",
        f"This API token was revoked on 2026-11-20 at 03:12 UTC. {api_tokens.MAKE}",
    ),
    "expired": (
        "UPDATE leases_apitoken SET expires_at = '2026-11-20 03:12:40' WHERE id = :id",
        f"This API token expired on 2026-11-20 at 03:12 UTC. {api_tokens.MAKE}",
    ),
    "whose person was deactivated": (
        "UPDATE auth_user SET is_active = 0 WHERE id = :user",
        api_tokens.INACTIVE,
    ),
    "whose person may not read": (
        "DELETE FROM auth_user_groups WHERE user_id = :user",
        api_tokens.MAY_NOT_READ,
    ),
}
