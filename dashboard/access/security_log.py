"""The security log: who signed in or was refused, who gave or took a right, and who chose where
data goes."""

from __future__ import annotations

import logging
from enum import StrEnum

from django.db import Error, transaction

from dashboard import clock
from dashboard.access.redaction import redact
from leases.models import SecurityRecord

logger = logging.getLogger(__name__)

OK = "ok"
MAX_LENGTH = {"who": 150, "address": 64, "about": 300, "outcome": 100}  # of the columns


class SecurityEvent(StrEnum):
    SIGN_IN = "sign_in"
    SIGN_IN_REFUSED = "sign_in_refused"
    SIGN_OUT = "sign_out"
    TOKEN_CREATED = "token_created"  # noqa: S105
    TOKEN_USED_REFUSED = "token_used_refused"  # noqa: S105
    TOKEN_REVOKED = "token_revoked"  # noqa: S105
    ROLE_CHANGED = "role_changed"
    PASSWORD_CHANGED = "password_changed"  # noqa: S105
    LINK_CREATED = "link_created"
    LINK_REVOKED = "link_revoked"
    RECEIVER_CREATED = "receiver_created"
    RECEIVER_CHANGED = "receiver_changed"
    RECEIVER_TESTED = "receiver_tested"
    RECEIVER_DELETED = "receiver_deleted"
    EXPORT = "export"
    PROXY_REFUSED = "proxy_refused"
    DEACTIVATED = "deactivated"


def record(
    event: SecurityEvent, *, who: str, address: str, about: str = "", outcome: str = OK
) -> None:
    """Write one line. Not on the event loop.

    A database that refuses the line does not stop what the line is about: that goes to the log.
    """
    given = {"who": who, "address": address, "about": about, "outcome": outcome}
    texts = {name: _storable(text)[: MAX_LENGTH[name]] for name, text in given.items()}
    try:
        with transaction.atomic():
            SecurityRecord.objects.create(at=clock.now(), event=event, **texts)
    except Error as error:
        logger.warning("The security log lacks %s of %r: %s", event, texts["who"], error)


def _storable(text: str) -> str:
    """Without secrets and without what a database or a line cannot hold."""
    return "".join(
        one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in redact(text)
    )
