"""The Django app of the models."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created


class LeasesConfig(AppConfig):
    name = "leases"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from leases.history.database import read_any_text

        connection_created.connect(read_any_text, dispatch_uid="leases.any_text")
