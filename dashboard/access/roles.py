"""The two roles as Django groups. Finer groups can be made in /admin/ from the same permissions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, Permission
from django.db.migrations import Migration
from django.db.migrations.operations import CreateModel

Plan = Iterable[tuple[Migration, bool]]  # what was applied, and whether backwards

VIEW = "leases.view_change"
EDIT = "leases.edit_lease"
WALL_LINKS = "leases.change_walllink"
API_TOKENS = "leases.change_apitoken"  # those of others
READ_TRAIL = "leases.view_edit"
READ_SECURITY_LOG = "leases.view_securityrecord"
OVERRIDE_KIND = "leases.change_kindoverride"
PEOPLE = "auth.view_user"
MANAGE_PEOPLE = "auth.change_user"
RECEIVERS = "leases.change_receiver"
BADGES = "leases.change_badge"
READS = ("view_change", "view_edit")
EDITS = (
    *READS, "edit_lease", "view_walllink", "add_walllink", "change_walllink", "view_user",
    "add_user", "change_user", "change_kindoverride", "view_refusedrow",
    "view_securityrecord", "change_receiver", "change_badge", "change_apitoken",
)  # fmt: skip
ROLES = {"operator": READS, "admin": EDITS}


def ensure_roles(*, plan: Plan = (), **_signal: Any) -> None:
    """Make the groups where they are missing; one that exists is left as its admins shaped it, but
    for what concerns a model that the migrations of `plan` made just now."""
    made_now = [
        operation.name.lower()
        for migration, backwards in plan
        for operation in migration.operations
        if isinstance(operation, CreateModel) and not backwards
    ]
    for name, codenames in ROLES.items():
        group, made = Group.objects.get_or_create(name=name)
        wanted = Permission.objects.filter(codename__in=codenames)
        new = wanted if made else wanted.filter(content_type__model__in=made_now)
        group.permissions.add(*new)


def role_of(user: AbstractBaseUser | AnonymousUser) -> str:
    """The word shown beside the name: admin, operator, or guest for no right at all."""
    if user.has_perm(EDIT):  # type: ignore[union-attr]
        return "admin"
    return "operator" if user.has_perm(VIEW) else "guest"  # type: ignore[union-attr]
