"""What a role may do after an upgrade."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.contrib.auth.models import Group

from dashboard.access.roles import ROLES, ensure_roles


@pytest.mark.django_db
def test_a_role_learns_of_a_new_model_and_is_else_left_as_it_was_shaped():
    admins = Group.objects.get(name="admin")
    admins.permissions.clear()
    ensure_roles(plan=[])
    assert not admins.permissions.exists()
    migration = import_module("leases.migrations.0004_kind_override").Migration("0004", "leases")
    ensure_roles(plan=[(migration, True)])
    assert not admins.permissions.exists()
    ensure_roles(plan=[(migration, False)])
    assert [one.codename for one in admins.permissions.all()] == ["change_kindoverride"]
    operators = Group.objects.get(name="operator")
    assert not operators.permissions.filter(codename="change_kindoverride").exists()


@pytest.mark.django_db
def test_a_role_that_is_missing_is_made_with_all_its_permissions():
    Group.objects.all().delete()
    ensure_roles()
    for name, codenames in ROLES.items():
        given = Group.objects.get(name=name).permissions.values_list("codename", flat=True)
        assert set(given) == set(codenames)
