"""Django's name for what a person sees, and the roles it needs."""

from __future__ import annotations

from django.apps import AppConfig, apps
from django.contrib.admin.apps import AdminConfig
from django.db.models.signals import post_migrate


class BoardAdminConfig(AdminConfig):
    """Takes the place of `django.contrib.admin` in INSTALLED_APPS, for a site of our own."""

    default_site = "dashboard.access.people.admin_site.BoardAdminSite"


class DashboardConfig(AppConfig):
    name = "dashboard"

    def ready(self) -> None:
        from dashboard.access.roles import ensure_roles

        # Django tells only apps with models that they were migrated; these are also the last to be.
        post_migrate.connect(
            ensure_roles,
            sender=apps.get_app_config("leases"),
            dispatch_uid="dashboard.roles",
        )
