"""Whether the clock of this server agrees with history, which retention and totals go by.

A start with a clock that is 400 days ahead must not delete 400 days of history. So we store the
last moment of a clock that we trust. A clock that is further from it than a day more than the
process has run is not trusted: until it is put right, a holder on another machine renews by the
same clock, or a person confirms it (`manage.py confirm_clock`).
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Max

from leases import models

MOST_APART = timedelta(days=1)
_ONLY = 1  # the row's number


def trusted_until(process: str = "") -> datetime | None:
    """The last moment of a trusted clock; None: there is no history to contradict the clock.

    A history from before this was stored ends with the newest time that another process watched.
    """
    row = models.TrustedClock.objects.filter(pk=_ONLY).first()
    if row is not None:
        return row.until
    others = models.WatchSpan.objects.exclude(process=process)
    newest: datetime | None = others.aggregate(newest=Max("until"))["newest"]
    return newest


def keep(until: datetime) -> None:
    """Store what `trusted_until` found, before rows by a doubtful clock hide it."""
    models.TrustedClock.objects.get_or_create(pk=_ONLY, defaults={"until": until})


def agrees(now: datetime, until: datetime | None, *, explained: timedelta = timedelta(0)) -> bool:
    """Whether `now` fits to the last trusted moment; `explained` is how long this process runs."""
    return until is None or -MOST_APART <= now - until <= explained + MOST_APART


def trust(now: datetime) -> None:
    """Note that the clock is right at this moment, whatever was noted before."""
    models.TrustedClock.objects.update_or_create(pk=_ONLY, defaults={"until": now})


def advance(now: datetime) -> None:
    """Note that the clock is right; another replica may have noted a later moment."""
    with transaction.atomic():
        models.TrustedClock.objects.get_or_create(pk=_ONLY, defaults={"until": now})
        models.TrustedClock.objects.filter(pk=_ONLY, until__lt=now).update(until=now)


def near_the_last_trusted(now: datetime) -> bool:
    """Whether a moment fits, for a write that comes while this process trusts its clock or not."""
    row = models.TrustedClock.objects.filter(pk=_ONLY).first()
    return row is None or abs(now - row.until) <= MOST_APART
