"""What admins say of Leases, as database tables. Import them from `leases.models`."""

from __future__ import annotations

from django.db import models


class KindOverride(models.Model):
    """The kind of a Lease set by an admin, which beats the rules. Outlives the Lease."""

    cluster = models.CharField(max_length=32)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    kind = models.CharField(max_length=16)
    username = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "namespace", "name"], name="overruled_once"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.namespace}/{self.name} is {self.kind}"


class VacancyMark(models.Model):
    """From `at` to `ended_at`, an admin says that a Lease may be vacant. Outlives the Lease."""

    cluster = models.CharField(max_length=32)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    username = models.CharField(max_length=150)
    at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "namespace", "name"],
                name="vacancy_mark_once",
                condition=models.Q(ended_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.namespace}/{self.name} may be vacant"
