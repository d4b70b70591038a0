"""Tells when a right may have ended in this process: somebody signed out; a user, a group, a wall
link or an API token was changed. The timer of `rights_watch` finds changes by another process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models.signals import ModelSignal, m2m_changed, post_delete, post_save

from leases.models import ApiToken, WallLink

UID = "dashboard.access.rights.right_changes"
# Django writes this at each sign-in; it ends no right.
HARMLESS = frozenset({"last_login"})

SIGNALS: tuple[tuple[ModelSignal, Any], ...] = (
    (post_delete, Session),
    (post_save, User),
    (post_delete, User),
    (post_delete, Group),
    (post_save, WallLink),
    (post_delete, WallLink),
    (post_save, ApiToken),
    (post_delete, ApiToken),
    (m2m_changed, User.groups.through),
    (m2m_changed, User.user_permissions.through),
    (m2m_changed, Group.permissions.through),
)


def connect(notify: Callable[[], None]) -> None:
    """Call `notify` after each such change is committed."""
    for signal, sender in SIGNALS:
        signal.connect(partial(_changed, notify), sender=sender, weak=False, dispatch_uid=UID)


def disconnect() -> None:
    for signal, sender in SIGNALS:
        signal.disconnect(sender=sender, dispatch_uid=UID)


def _changed(notify: Callable[[], None], *, update_fields: Any = None, **_signal: Any) -> None:
    if update_fields is None or not HARMLESS.issuperset(update_fields):
        transaction.on_commit(notify, robust=True)
