"""Django's app of the dashboard; it times database statements, refuses a newer database before a
migration, and makes the roles after it."""

from django.apps import AppConfig, apps
from django.contrib.admin.apps import AdminConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate, pre_migrate


class BoardAdminConfig(AdminConfig):
    """Replaces `django.contrib.admin` in INSTALLED_APPS, to use our own admin site."""

    default_site = "dashboard.access.admin_site.BoardAdminSite"


class DashboardConfig(AppConfig):
    name = "dashboard"

    def ready(self) -> None:
        from dashboard.access.roles import ensure_roles
        from dashboard.log_lines import time_statements
        from dashboard.serving.data_directory import refuse_newer

        connection_created.connect(time_statements, dispatch_uid="dashboard.statements")
        leases = apps.get_app_config("leases")
        pre_migrate.connect(refuse_newer, sender=leases, dispatch_uid="dashboard.newer")
        # Django sends post_migrate only for apps with models; `leases` is the last of them.
        post_migrate.connect(ensure_roles, sender=leases, dispatch_uid="dashboard.roles")
