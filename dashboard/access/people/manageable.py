"""Whom somebody may manage and what he may give: nobody makes himself, or another, more than he
is himself."""

from __future__ import annotations

from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q, QuerySet


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
