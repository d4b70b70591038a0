"""Who can manage people, and that somebody always can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.models import Permission, User
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet

from leases.history.write.replica_lock import transaction_in_turn

LAST = "Nobody could manage people any more: make somebody else an admin first."


class LastAdmin(PermissionDenied):
    """The change would leave nobody who can manage people."""


def active_admins() -> QuerySet[User]:
    gives = Permission.objects.filter(content_type__app_label="auth", codename="change_user")
    may = Q(is_superuser=True) | Q(groups__permissions__in=gives) | Q(user_permissions__in=gives)
    return User.objects.filter(may, is_active=True).distinct()


@contextmanager
def keeping_an_admin() -> Iterator[None]:
    """Undo the block and raise LastAdmin if it leaves no admin. Replicas wait for each other."""
    with transaction_in_turn("people"):
        yield
        if not active_admins().exists():
            raise LastAdmin(LAST)
