"""Who is notified of incidents, and what waits to be sent. `leases.models` imports them."""

from __future__ import annotations

from django.db import models


class Receiver(models.Model):
    """Where messages go, and which ones."""

    name = models.CharField(max_length=100, unique=True)
    sort = models.CharField(max_length=16)  # leases.domain.notify.target.Sort
    sealed = models.TextField()  # leases.domain.notify.target.Target, encrypted
    shown = models.CharField(max_length=300, default="")  # what may be shown of the target
    choice = models.TextField(default="{}")  # leases.domain.notify.choice.Choice as JSON
    group_seconds = models.IntegerField(default=0)  # 0: each message on its own
    enabled = models.BooleanField(default=True)
    changed_by = models.CharField(max_length=150, default="")
    created_at = models.DateTimeField()
    failures = models.IntegerField(default=0)  # deliveries in a row
    retry_at = models.DateTimeField(null=True)  # after a failure nothing is sent before
    last_error = models.TextField(default="")
    last_sent_at = models.DateTimeField(null=True)
    refreshed_at = models.DateTimeField(null=True)  # of Alertmanager: what goes on was sent again

    class Meta:
        default_permissions = ("change",)

    def __str__(self) -> str:
        return self.name


class Notification(models.Model):
    """One message to one receiver. Rows that wait are the queue; the others are the log."""

    WAITING, SENT, FAILED = "waiting", "sent", "failed"
    SILENCED, WITHDRAWN = "silenced", "withdrawn"

    receiver = models.ForeignKey(Receiver, on_delete=models.CASCADE)
    cluster = models.CharField(max_length=32)
    incident = models.CharField(max_length=64)
    step = models.IntegerField()  # 0 is the first message about this incident
    stage = models.CharField(max_length=16)  # leases.domain.notify.message.Stage
    content = models.TextField()  # leases.domain.notify.message.Message as JSON
    made_at = models.DateTimeField()
    due_at = models.DateTimeField()
    state = models.CharField(max_length=16, default=WAITING)
    attempts = models.IntegerField(default=0)
    delivery = models.CharField(max_length=64, default="")  # the same for all rows of one sending
    claimed_by = models.CharField(max_length=64, default="")
    claimed_until = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    outcome = models.TextField(default="")

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["receiver", "cluster", "incident", "step"], name="notification_once"
            ),
        ]
        indexes = [
            models.Index(
                fields=["receiver", "due_at"],
                name="notification_waiting",
                condition=models.Q(state="waiting"),
            ),
            models.Index(fields=["cluster", "incident"], name="notification_by_incident"),
            models.Index(fields=["ended_at"], name="notification_by_end"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.incident} {self.stage}: {self.state}"


class QuietTime(models.Model):
    """A mute, or a maintenance window: incidents of these Leases alone send nothing meanwhile."""

    cluster = models.CharField(max_length=32, default="")  # "": all
    namespace = models.CharField(max_length=63, default="")  # "": all
    name = models.CharField(max_length=253, default="")  # "": all of the namespace
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)  # null: until somebody ends it
    reason = models.TextField(default="")
    who = models.CharField(max_length=150)

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["until"], name="quiet_time_by_end")]

    def __str__(self) -> str:
        return f"{self.cluster} {self.namespace}/{self.name} until {self.until}"


class Acknowledgement(models.Model):
    """A person takes care of an incident: it is not sent again when it worsens."""

    cluster = models.CharField(max_length=32)
    incident = models.CharField(max_length=64)
    who = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["cluster", "incident"], name="acknowledged_once"),
        ]

    def __str__(self) -> str:
        return f"{self.who} on {self.cluster} {self.incident}"


class Badge(models.Model):
    """A link to a picture of the present state. The token is not stored."""

    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    cluster = models.CharField(max_length=32)
    namespace = models.CharField(max_length=63, default="")  # "": the whole cluster
    lease = models.CharField(max_length=253, default="")  # "": the whole namespace
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ("change",)

    def __str__(self) -> str:
        return self.name
