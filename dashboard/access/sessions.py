"""Django's sessions in the database, which also say when they end."""

from datetime import datetime
from typing import Any

from django.contrib.sessions.backends import db


class SessionStore(db.SessionStore):
    """`expires_at` is known once the session was read."""

    expires_at: datetime | None = None

    def _get_session_from_db(self) -> Any:
        found = super()._get_session_from_db()  # type: ignore[misc]
        self.expires_at = None if found is None else found.expire_date
        return found
