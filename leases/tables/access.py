"""Links and tokens that let people and programs in, and the security log.

Import them from `leases.models`.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models


class WallLink(models.Model):
    """A named link that opens the walls of its clusters without signing in, and nothing else."""

    name = models.CharField(max_length=100)
    # Null: from a version without random links. Such a link opens nothing.
    digest = models.CharField(max_length=64, null=True, unique=True)  # noqa: DJ001
    clusters = models.JSONField(default=list)  # names of clusters
    created_by = models.CharField(max_length=150, default="")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)  # to the minute

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["name"], name="wall_link_once", condition=models.Q(revoked_at=None)
            ),
        ]

    def __str__(self) -> str:
        return self.name


class SignInLink(models.Model):
    """A link that signs one user in, once. The token is not stored."""

    digest = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.user} until {self.expires_at}"


class ApiToken(models.Model):
    """Lets a program read as one person, until it expires. The token itself is not stored."""

    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    role = models.CharField(max_length=16)  # dashboard.access.programs.token_person.READS
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)  # to the minute

    class Meta:
        default_permissions = ("change",)
        constraints = [
            models.UniqueConstraint(
                fields=["user", "name"],
                name="api_token_once",
                condition=models.Q(revoked_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"


class Person(models.Model):
    """What Leaseboard knows of an account beside Django's own fields."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True)
    by_proxy = models.BooleanField(default=False)  # whether the proxy may sign it in
    last_seen_at = models.DateTimeField(null=True)  # to the minute

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.user)


class SecurityRecord(models.Model):
    """One line of the security log: who came in or was refused, and who gave or took a right."""

    at = models.DateTimeField()
    event = models.CharField(max_length=32)  # dashboard.access.security_log.SecurityEvent
    who = models.CharField(max_length=150)  # a name as it was given, which may be nobody's
    address = models.CharField(max_length=64, default="")  # of the client; "" is unknown
    about = models.CharField(max_length=300, default="")  # such as the person whose role changed
    outcome = models.CharField(max_length=100, default="ok")

    class Meta:
        default_permissions = ("view",)
        indexes = [models.Index(fields=["-at", "-id"], name="security_by_time")]

    def __str__(self) -> str:
        return f"{self.who} {self.event} {self.about}: {self.outcome}"
