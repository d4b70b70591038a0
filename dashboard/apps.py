"""Django's name for what a person sees, and the roles it needs."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class DashboardConfig(AppConfig):
    name = "dashboard"

    def ready(self) -> None:
        from dashboard.roles import ensure_roles

        post_migrate.connect(ensure_roles, sender=self, dispatch_uid="dashboard.roles")
