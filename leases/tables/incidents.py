"""Incidents, notes and messages about them, and totals of reliability, as database tables."""

from datetime import timedelta

from django.db import models

# Longer incidents are found by an index of their own. A change needs a migration of the rows.
LONG = timedelta(hours=6)


class IncidentRecord(models.Model):
    """One incident as it was last known. Columns of lists hold JSON as text."""

    cluster = models.CharField(max_length=32)
    incident = models.CharField(max_length=64)  # leases.domain.incident.Incident.id
    cause = models.CharField(max_length=32)
    confidence = models.CharField(max_length=16)
    sentence = models.TextField()
    began = models.DateTimeField()
    ended = models.DateTimeField(null=True)
    lasted_long = models.BooleanField(default=False, db_default=False)  # over, after LONG
    updated_at = models.DateTimeField()
    settled = models.BooleanField(default=False)
    worst_gap_seconds = models.FloatField(null=True)
    unheld_since = models.DateTimeField(null=True)
    changes = models.IntegerField()  # how many belong to it
    writer = models.TextField(null=True)  # noqa: DJ001 - null is unknown, as in JSON
    standing = models.CharField(max_length=16, default="unplanned", db_default="unplanned")
    shown = models.BooleanField(default=True, db_default=True)  # where nobody asked for all
    part_of = models.CharField(max_length=64, default="")  # of a withdrawn one: its successor
    leases = models.TextField(default="[]")  # namespace/name
    hosts = models.TextField(default="[]")
    holders = models.TextField(default="[]")  # before and after each change of the story
    evidence = models.TextField(default="[]")
    without = models.TextField(default="[]")
    members = models.TextField(default="[]")  # while it may change
    # How many are not listed (leases.domain.incident.Unlisted); "": all are.
    unlisted = models.TextField(default="", db_default="")
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
            models.Index(
                fields=["cluster", "began", "incident"],
                name="incident_unplanned",
                condition=models.Q(shown=True),
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


class Receiver(models.Model):
    """Where messages go, and which ones."""

    name = models.CharField(max_length=100, unique=True)
    sort = models.CharField(max_length=16)  # leases.domain.notify.Sort
    sealed = models.TextField()  # leases.domain.notify.Target, encrypted
    shown = models.CharField(max_length=300, default="")  # what may be shown of the target
    choice = models.TextField(default="{}")  # leases.domain.notify.Choice as JSON
    group_seconds = models.IntegerField(default=0)  # 0: each message on its own
    enabled = models.BooleanField(default=True)
    address = models.CharField(max_length=300, default="")  # of these pages, as an admin came
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
    stage = models.CharField(max_length=16)  # leases.domain.notify.Stage
    content = models.TextField()  # leases.domain.notify.Message as JSON
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
    """A person takes care of an incident: it is not sent again when it worsens. Since `over_at` it
    is over, as this person decided.
    """

    cluster = models.CharField(max_length=32)
    incident = models.CharField(max_length=64)
    who = models.CharField(max_length=150)
    at = models.DateTimeField()
    over_at = models.DateTimeField(null=True)

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


class ReliabilityRecord(models.Model):
    """Totals of one election in one period; without a name those of its namespace, or of all.

    Rows of weeks and quarters are the sums of the rows of their days.
    """

    cluster = models.CharField(max_length=32)
    period = models.CharField(max_length=8)  # leases.domain.figures.Period
    since = models.DateField()  # the first day of the period, in UTC
    scope = models.CharField(max_length=10)  # leases.history.reliability.Scope
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    gap_seconds = models.FloatField()
    watched_seconds = models.FloatField()
    unwatched_seconds = models.FloatField()
    handovers = models.BigIntegerField()
    failovers = models.BigIntegerField()
    near_misses = models.BigIntegerField()
    lost_share = models.FloatField()  # of the watched time; -1: nobody watched
    until = models.DateTimeField()  # the moment up to which the period is counted

    class Meta:
        db_table = "leases_reliability"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "period", "since", "namespace", "name"], name="reliability_once"
            ),
        ]
        indexes = [
            models.Index(
                fields=["cluster", "period", "since", "scope", "-lost_share", "namespace", "name"],
                name="reliability_worst",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.namespace}/{self.name} {self.period} {self.since}"


class ReliabilityProgress(models.Model):
    """The first day of a cluster whose totals may still change."""

    cluster = models.CharField(max_length=32, unique=True)
    day = models.DateField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.cluster} before {self.day}"


class TrustedClock(models.Model):
    """One row: the last moment of a clock that we trust (leases/history/trusted_clock.py)."""

    until = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.until.isoformat()


class NearMissCount(models.Model):
    """The near misses of one Lease in some minutes, until their day is counted."""

    cluster = models.CharField(max_length=32)
    at = models.DateTimeField()
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    number = models.IntegerField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "at", "namespace", "name"], name="near_misses_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.namespace}/{self.name} {self.at}"


class ReliabilityObjective(models.Model):
    """The share of watched time, in percent, in which an election of a cluster has a holder."""

    cluster = models.CharField(max_length=32, unique=True)
    percent = models.FloatField()
    username = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.cluster} {self.percent} %"
