"""Incidents and notes about them, as database tables. Import them from `leases.models`."""

from __future__ import annotations

from datetime import timedelta

from django.db import models

# Longer incidents are found by an index of their own. A change needs a migration of the rows.
LONG = timedelta(hours=6)


class IncidentRecord(models.Model):
    """One incident as it was last known. Columns of lists hold JSON as text."""

    cluster = models.CharField(max_length=32)
    incident = models.CharField(max_length=64)  # leases.domain.cause.incident.Incident.id
    cause = models.CharField(max_length=32)
    confidence = models.CharField(max_length=16)
    sentence = models.TextField()
    began = models.DateTimeField()
    ended = models.DateTimeField(null=True)
    lasted_long = models.BooleanField(default=False, db_default=False)  # over, after LONG
    updated_at = models.DateTimeField()
    settled = models.BooleanField(default=False)
    worst_gap_seconds = models.FloatField(null=True)
    changes = models.IntegerField()  # how many belong to it
    writer = models.TextField(null=True)  # noqa: DJ001 - null is unknown, as in JSON
    part_of = models.CharField(max_length=64, default="")  # of a withdrawn one: its successor
    leases = models.TextField(default="[]")  # namespace/name
    hosts = models.TextField(default="[]")
    holders = models.TextField(default="[]")  # before and after each change of the story
    evidence = models.TextField(default="[]")
    without = models.TextField(default="[]")
    members = models.TextField(default="[]")  # while it may change
    story = models.TextField(default="[]")  # copies of its first changes: they outlive the rows

    class Meta:
        db_table = "leases_incident"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["cluster", "incident"], name="incident_once"),
        ]
        indexes = [
            models.Index(fields=["cluster", "began", "incident"], name="incident_by_time"),
            models.Index(
                fields=["cluster", "began", "incident"],
                name="incident_going_on",
                condition=models.Q(ended=None),
            ),
            models.Index(
                fields=["cluster", "began", "incident"],
                name="incident_that_lasted",
                condition=models.Q(lasted_long=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.incident}: {self.sentence}"


class IncidentNote(models.Model):
    """What a person wrote about an incident."""

    cluster = models.CharField(max_length=32)
    incident = models.CharField(max_length=64)
    who = models.CharField(max_length=150)
    at = models.DateTimeField()
    text = models.TextField()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["cluster", "incident", "at"], name="note_by_incident")]

    def __str__(self) -> str:
        return f"{self.who} on {self.cluster} {self.incident}"
