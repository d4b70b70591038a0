"""Totals of days, weeks and quarters, as database tables. Import them from `leases.models`."""

from __future__ import annotations

from django.db import models


class ReliabilityRecord(models.Model):
    """Totals of one election in one period; without a name those of its namespace, or of all.

    Rows of weeks and quarters are the sums of the rows of their days.
    """

    cluster = models.CharField(max_length=32)
    period = models.CharField(max_length=8)  # leases.domain.past.periods.Period
    since = models.DateField()  # the first day of the period, in UTC
    scope = models.CharField(max_length=10)  # leases.history.reliability_row.Scope
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
