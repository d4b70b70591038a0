"""The table of "Delete many". Import it from `leases.models`."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Deletion(models.Model):
    """One choice of Leases to delete, and how far it came.

    What became of each Lease is in the audit trail, in rows of this `batch`.
    """

    WAITING, RUNNING = "waiting", "running"
    DONE, STOPPED, INTERRUPTED = "done", "stopped", "interrupted"
    ACTIVE = (WAITING, RUNNING)

    batch = models.CharField(max_length=64, unique=True)
    cluster = models.CharField(max_length=32)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    username = models.CharField(max_length=150)
    address = models.CharField(max_length=64, default="")  # of the client; "" is unknown
    as_user = models.CharField(max_length=150, default="")  # impersonated; "": nobody
    reason = models.TextField(default="")
    words = models.TextField(default="")  # what was chosen, for people
    # leases.actions.delete_many.choice.pack; after the end only those without an audit row.
    chosen = models.BinaryField()
    total = models.IntegerField()
    made_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    state = models.CharField(max_length=16, default=WAITING)
    note = models.TextField(default="")  # what it waits for, or why it ended
    process = models.CharField(max_length=32)  # that runs it
    beat_at = models.DateTimeField()  # when that process last said that it runs
    stop_asked = models.BooleanField(default=False)
    # Identifies the drawn form: a second request of the same form starts nothing.
    once = models.CharField(max_length=64, null=True, unique=True)  # noqa: DJ001

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["cluster", "state"], name="deletion_by_state")]

    def __str__(self) -> str:
        return f"{self.username} deletes {self.total} Leases of {self.cluster}: {self.state}"
