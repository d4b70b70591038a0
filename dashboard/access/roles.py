"""The two roles as Django groups, who can manage people, and whom they may manage."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db.migrations import Migration
from django.db.migrations.operations import CreateModel
from django.db.models import Q, QuerySet

from leases.history.database import transaction_in_turn

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
SAVED_VIEWS = "leases.change_savedview"  # those that others share
CLUSTERS = "leases.change_addedcluster"
READS = ("view_change", "view_edit")
EDITS = (
    *READS, "edit_lease", "view_walllink", "add_walllink", "change_walllink", "view_user",
    "add_user", "change_user", "change_kindoverride", "view_refusedrow",
    "view_securityrecord", "change_receiver", "change_badge", "change_apitoken",
    "change_savedview",
    "change_addedcluster",
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


def permissions_of(user: User) -> set[int]:
    """All permissions of an account, also of a deactivated one: it could be activated again."""
    own = Q(user=user) | Q(group__user=user)
    return set(Permission.objects.filter(own).values_list("pk", flat=True))


def may_manage(actor: User, target: User) -> bool:
    """Whether the actor may edit the account, its password included: only of somebody who may do
    nothing that the actor may not do."""
    if actor.is_superuser:
        return True
    if target.is_superuser or (target.is_staff and not actor.is_staff):
        return False
    return permissions_of(target) <= permissions_of(actor)


def may_manage_group(actor: User, group: Group) -> bool:
    """The same for a group and those who are in it."""
    return grantable_groups(actor).filter(pk=group.pk).exists()


def grantable_permissions(actor: User) -> QuerySet[Permission]:
    """What the actor may give: what he has."""
    if actor.is_superuser:
        return Permission.objects.all()
    return Permission.objects.filter(pk__in=permissions_of(actor))


def grantable_groups(actor: User) -> QuerySet[Group]:
    """The groups that the actor may put somebody in: those that may do no more than he."""
    if actor.is_superuser:
        return Group.objects.all()
    beyond = Permission.objects.exclude(pk__in=permissions_of(actor))
    return Group.objects.exclude(permissions__in=beyond)
