"""A bounded pool of connections to PostgreSQL, for the process that serves.

Commands connect by themselves: they need one connection, and a pool would hide why there is none.
"""

from __future__ import annotations

from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

# More than all threads together: those of `thread_choice`, of history and of the sockets.
MAX_CONNECTIONS = 30
POOL: dict[str, Any] = {
    "min_size": 1,
    "max_size": MAX_CONNECTIONS,
    "timeout": 5.0,  # seconds that a page waits for a connection
    "max_idle": 60.0,  # seconds after which one that nobody uses is closed
    "max_waiting": 200,
}


def bound_connections() -> None:
    """From now on each thread borrows its connection and gives it back."""
    settings = connections.settings[DEFAULT_DB_ALIAS]
    if settings["ENGINE"] != "django.db.backends.postgresql":
        return
    connections.close_all()
    settings.setdefault("OPTIONS", {})["pool"] = POOL
    settings["CONN_HEALTH_CHECKS"] = True  # or those from before a restart of PostgreSQL would fail


def close_connections() -> None:
    """The pool has threads of its own, which end here."""
    connections.close_all()
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.vendor == "postgresql":
        connection.close_pool()  # type: ignore[attr-defined]
        connection.settings_dict["OPTIONS"].pop("pool", None)
