"""The two roles as Django groups. Finer groups can be made in /admin/ from the same permissions."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, Permission

VIEW = "leases.view_change"
EDIT = "leases.edit_lease"
WALL_LINKS = "leases.change_walllink"
OVERRULE = "leases.change_kindoverride"
READS = ("view_change", "view_edit")
EDITS = (
    *READS, "edit_lease", "view_walllink", "add_walllink", "change_walllink", "view_user",
    "add_user", "change_user", "change_kindoverride",
)  # fmt: skip
ROLES = {"operator": READS, "admin": EDITS}


def ensure_roles(**_signal: Any) -> None:
    """Make the groups where they are missing; one that exists is left as its admins shaped it."""
    for name, codenames in ROLES.items():
        group, made = Group.objects.get_or_create(name=name)
        if made:
            group.permissions.set(Permission.objects.filter(codename__in=codenames))


def role_of(user: AbstractBaseUser | AnonymousUser) -> str:
    """The word shown beside the name: admin, operator, or guest for no right at all."""
    if user.has_perm(EDIT):  # type: ignore[union-attr]
        return "admin"
    return "operator" if user.has_perm(VIEW) else "guest"  # type: ignore[union-attr]
