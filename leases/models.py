"""The database tables: fields and constraints only. The rules are in `leases.domain`."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Length
from django.db.models.lookups import GreaterThan, LessThanOrEqual

from leases.tables.admin import (
    AddedCluster,
    ApiToken,
    Deletion,
    KindOverride,
    Person,
    SavedView,
    SecurityRecord,
    SignInLink,
    VacancyMark,
    WallLink,
    WallScreen,
)
from leases.tables.incidents import (
    Acknowledgement,
    Badge,
    IncidentNote,
    IncidentRecord,
    NearMissCount,
    Notification,
    QuietTime,
    Receiver,
    ReliabilityObjective,
    ReliabilityProgress,
    ReliabilityRecord,
    TrustedClock,
)

__all__ = [
    "Acknowledgement", "AddedCluster", "ApiToken", "Badge", "ChangeRecord", "Deletion", "Edit",
    "IncidentNote", "IncidentRecord", "KindOverride", "LeaseRecord", "NearMissCount",
    "Notification", "Person", "QuietTime", "Receiver", "RefusedRow", "ReliabilityObjective",
    "ReliabilityProgress", "ReliabilityRecord", "SavedView", "SecurityRecord", "SignInLink",
    "TrustedClock", "VacancyMark", "WallLink", "WallScreen", "WatchRecord", "WatchSpan",
]  # fmt: skip

# Values of `leases.domain.change.ChangeType`, for two of the indexes.
BEGIN_A_SPAN = (
    "acquired", "created", "deleted", "released", "replaced", "restarted", "taken_over",
)  # fmt: skip
END_A_GAP = ("acquired", "recovered", "replaced", "restarted", "taken_over")

# Longest holder, in characters, that an index stores whole. PostgreSQL limits an index row to 2,704
# bytes, but a holder may be as long as a Lease: other indexes store the start of longer holders.
INDEXED_HOLDER = 400


def _is_short(column: str) -> models.Q:
    return models.Q(LessThanOrEqual(Length(column), INDEXED_HOLDER))


def _is_long(column: str) -> models.Q:
    return models.Q(GreaterThan(Length(column), INDEXED_HOLDER))


def _start_of(column: str) -> models.Func:
    return models.Func(
        models.F(column), models.Value(1), models.Value(INDEXED_HOLDER), function="SUBSTR"
    )


class ChangeRecord(models.Model):
    """One change of a Lease. Append-only: all history is computed from these rows."""

    cluster = models.CharField(max_length=32)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    kind = models.CharField(max_length=16)
    change = models.CharField(max_length=16)
    at = models.DateTimeField()
    observed_at = models.DateTimeField()
    holder = models.TextField(null=True)  # noqa: DJ001 - null is nobody, as in JSON
    previous_holder = models.TextField(null=True)  # noqa: DJ001
    resource_version = models.CharField(max_length=32)
    transitions = models.BigIntegerField(null=True)
    missed = models.IntegerField(default=0)
    inferred = models.BooleanField(default=False)
    inferred_since = models.DateTimeField(null=True)
    gap_seconds = models.FloatField(null=True)
    renewed_at = models.DateTimeField(null=True)  # of `expired` and `created`: the last renewal
    fields = models.TextField(default="")  # of a reconfiguration, separated by spaces
    # Null: unknown, and in rows of versions that did not look for it.
    writer = models.TextField(null=True)  # noqa: DJ001
    cause = models.CharField(max_length=32, null=True)  # noqa: DJ001
    incident = models.CharField(max_length=64, null=True)  # noqa: DJ001
    identity = models.CharField(max_length=400)

    class Meta:
        db_table = "leases_change"
        default_permissions = ()
        permissions = [
            ("add_change", "Can add change"),
            ("change_change", "Can change change"),
            ("delete_change", "Can delete change"),
            ("view_change", "Can view change"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "namespace", "name", "identity"], name="change_once"
            ),
        ]
        indexes = [
            models.Index(fields=["cluster", "at", "id"], name="change_by_time"),
            models.Index(
                fields=["cluster", "namespace", "name", "at", "id"], name="change_by_lease"
            ),
            models.Index(fields=["cluster", "kind", "change", "at", "id"], name="change_by_kind"),
            models.Index(
                fields=["cluster", "cause", "at", "id"],
                name="change_by_cause",
                condition=models.Q(cause__isnull=False),
            ),
            models.Index(
                fields=["cluster", "holder", "at", "id"],
                name="change_by_holder",
                condition=_is_short("holder"),
            ),
            models.Index(
                fields=["cluster", "previous_holder", "at", "id"],
                name="change_by_previous",
                condition=_is_short("previous_holder"),
            ),
            models.Index(
                "cluster",
                _start_of("holder"),
                "at",
                "id",
                name="change_by_long_holder",
                condition=_is_long("holder"),
            ),
            models.Index(
                "cluster",
                _start_of("previous_holder"),
                "at",
                "id",
                name="change_by_long_previous",
                condition=_is_long("previous_holder"),
            ),
            models.Index(
                fields=["cluster", "at", "id"],
                name="change_inferred",
                condition=models.Q(inferred=True),
            ),
            models.Index(
                fields=["cluster", "namespace", "name"],
                name="change_conclusions",
                condition=models.Q(inferred=True),
            ),
            models.Index(
                fields=["cluster", "namespace", "name", "at", "id"],
                name="change_begins",
                condition=models.Q(change__in=BEGIN_A_SPAN),
            ),
            models.Index(
                fields=["cluster", "kind", "at", "change", "namespace", "name", "gap_seconds"],
                name="change_ends_gap",
                condition=models.Q(change__in=END_A_GAP),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.namespace}/{self.name} {self.change}"


class LeaseRecord(models.Model):
    """The last known state of one Lease, for the next start."""

    cluster = models.CharField(max_length=32)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    tracked = models.BinaryField()  # leases.tracking.tracked_lease.Tracked as JSON

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "namespace", "name"], name="record_once"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.namespace}/{self.name}"


class RefusedRow(models.Model):
    """A value that the database refused, and why."""

    at = models.DateTimeField()  # when it was first refused
    cluster = models.CharField(max_length=32)
    what = models.CharField(max_length=16)  # leases.history.refused_rows.What
    namespace = models.TextField(default="")
    name = models.TextField(default="")
    error = models.TextField()  # the database's message
    content = models.TextField()  # the whole value as ASCII JSON
    digest = models.CharField(max_length=64, unique=True)  # identifies the value

    class Meta:
        indexes = [models.Index(fields=["cluster", "at"], name="refused_by_time")]
        verbose_name = "refused row"

    def __str__(self) -> str:
        return f"{self.cluster} {self.namespace}/{self.name} {self.what}: {self.error}"


class WatchRecord(models.Model):
    """How far one cluster's watch is stored."""

    cluster = models.CharField(max_length=32, unique=True)
    resource_version = models.CharField(max_length=32)
    watched_until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.cluster} at {self.resource_version}"


class WatchSpan(models.Model):
    """One unbroken time in which one process watched one cluster."""

    cluster = models.CharField(max_length=32)
    process = models.CharField(max_length=32)
    since = models.DateTimeField()
    until = models.DateTimeField()  # grows while the watch continues
    ended = models.CharField(max_length=16, default="")  # leases.domain.watched_times.WatchEnd
    detail = models.TextField(default="")  # why it ended, as shown on the pages

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "process", "since"], name="span_once"),
        ]
        indexes = [models.Index(fields=["cluster", "until"], name="span_by_end")]

    def __str__(self) -> str:
        return f"{self.cluster} {self.since} to {self.until}"


class Edit(models.Model):
    """One write made through a form: the intent before the call, the outcome after it."""

    INTENDED = "intended"

    at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    username = models.CharField(max_length=150)
    cluster = models.CharField(max_length=32)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    action = models.CharField(max_length=32)
    reason = models.TextField(default="")
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    outcome = models.CharField(max_length=16, default=INTENDED)
    detail = models.TextField(default="")
    # Identifies the drawn form: a second request of the same form writes nothing.
    once = models.CharField(max_length=64, null=True, unique=True)  # noqa: DJ001
    # Of the Lease as it was written; "" if the API did not tell.
    resource_version = models.CharField(max_length=32, default="")
    address = models.CharField(max_length=64, default="")  # of the client; "" is unknown
    batch = models.CharField(max_length=64, default="")  # the same for all rows of one bulk action
    as_user = models.CharField(max_length=150, default="")  # impersonated; "": nobody
    changes = models.JSONField(default=list)  # leases.actions.audit.FieldChange
    # The last attempt: verb, resource_version and uid it required, attempt, sent_at; {}: none.
    request = models.JSONField(default=dict)
    answer = models.JSONField(default=dict)  # of the API: code, reason, message, fields
    resolved_at = models.DateTimeField(null=True)  # of a row that a crash left open

    class Meta:
        indexes = [
            models.Index(fields=["-at"], name="edit_by_time"),
            models.Index(fields=["cluster", "namespace", "name", "at"], name="edit_by_lease"),
            models.Index(fields=["at"], name="edit_open", condition=models.Q(outcome="intended")),
            models.Index(fields=["batch"], name="edit_by_batch", condition=~models.Q(batch="")),
        ]
        permissions = [("edit_lease", "May create, edit, release and delete Leases")]

    def __str__(self) -> str:
        return f"{self.username} {self.action} {self.namespace}/{self.name}: {self.outcome}"
