"""Links, tokens, saved views, the security log, deletions of many, and what admins say of Leases.

Import them from `leases.models`.
"""

from collections.abc import Collection
from functools import cached_property

from django.conf import settings
from django.db import models


class WallLink(models.Model):
    """A named link that opens the walls of its clusters without signing in, and nothing else."""

    name = models.CharField(max_length=100)
    # Null: from a version without random links. Such a link opens nothing.
    digest = models.CharField(max_length=64, null=True, unique=True)  # noqa: DJ001
    clusters = models.JSONField(default=list)  # names of clusters
    # One wall of all of them together. Without names these are all clusters, whenever added.
    fleet = models.BooleanField(default=False)
    # What its screens show of each cluster; empty is all. No limit of what the link may read.
    namespace = models.CharField(max_length=1024, default="")  # several have commas between them
    kinds = models.JSONField(default=list)
    zone = models.CharField(max_length=64, default="UTC")  # as of a Person
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

    @cached_property
    def walls(self) -> Collection[str]:
        """The clusters whose walls it opens; "" is the wall of all of them together."""
        return dict.fromkeys([""] if self.fleet else self.clusters)


class WallScreen(models.Model):
    """A short code of a wall link, and then the screen on which it was typed.

    Neither the code nor the secret of the screen's cookie is stored.
    """

    link = models.ForeignKey(WallLink, on_delete=models.CASCADE, related_name="screens")
    code_digest = models.CharField(max_length=64, unique=True)
    code_ends_at = models.DateTimeField()
    # Null: nobody has typed the code yet.
    digest = models.CharField(max_length=64, null=True, unique=True)  # noqa: DJ001
    redeemed_at = models.DateTimeField(null=True)
    address = models.CharField(max_length=64, default="")  # from which it was; "" is unknown
    last_seen_at = models.DateTimeField(null=True)  # to the minute

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"a screen of {self.link}"


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
    role = models.CharField(max_length=16)  # dashboard.access.api_tokens.READS
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


class SavedView(models.Model):
    """A named page with its filter, of one person. A link to it survives a change of paths."""

    name = models.CharField(max_length=100)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    shared = models.BooleanField(default=False)  # with everybody who may read
    page = models.CharField(max_length=64)  # the name of its URL
    cluster = models.CharField(max_length=32, default="")  # "": the page is of no cluster
    query = models.TextField(default="")  # as in a URL, which has no NUL
    created_at = models.DateTimeField()

    class Meta:
        default_permissions = ("change",)  # to end the sharing of others
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="saved_view_once"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.owner}"


class Person(models.Model):
    """What Leaseboard knows of an account beside Django's own fields."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True)
    by_proxy = models.BooleanField(default=False)  # whether the proxy may sign it in
    last_seen_at = models.DateTimeField(null=True)  # to the minute
    # What `/` and signing in lead to.
    start = models.ForeignKey(SavedView, null=True, on_delete=models.SET_NULL, related_name="+")
    # In which pages show times: UTC, "local" for that of the browser, or a name of IANA.
    zone = models.CharField(max_length=64, default="UTC")

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
    # leases.actions.delete_many.pack; after the end only those without an audit row.
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


class AddedCluster(models.Model):
    """A cluster that an admin added while Leaseboard runs, and what is to be done with it."""

    name = models.CharField(max_length=32, unique=True)
    sealed = models.TextField()  # a kubeconfig of one context as JSON, encrypted
    revision = models.IntegerField(default=1)  # grows with each other `sealed`
    server = models.CharField(max_length=300, default="")  # what may be shown of it
    labels = models.JSONField(default=dict)
    added_by = models.CharField(max_length=150)
    added_at = models.DateTimeField()
    paused_by = models.CharField(max_length=150, default="")
    paused_at = models.DateTimeField(null=True)
    removed_by = models.CharField(max_length=150, default="")
    # From then on its history is being deleted; without that, the row goes at once.
    removed_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ("change",)

    def __str__(self) -> str:
        return self.name


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
