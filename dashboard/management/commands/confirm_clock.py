"""`confirm_clock`: a person says that the clock of this server is right, whatever history says."""

from typing import Any

from django.core.management.base import CommandError
from django.db import Error

from dashboard import clock
from dashboard.management.refusing import RefusingCommand, explain_database
from dashboard.parts.formatting import when
from leases.history import trusted_clock


class Command(RefusingCommand):
    help = (
        "Trust the clock of this server from now on: old history is deleted and reliability is "
        "counted by it again."
    )
    requires_system_checks = []
    reads_history = True

    def handle(self, **options: Any) -> None:
        now = clock.now()
        try:
            until = trusted_clock.trusted_until()
            trusted_clock.trust(now)
        except Error as error:
            raise CommandError(explain_database(error)) from error
        before = "" if until is None else f" Until now it was {when(until, now)} UTC."
        self.stdout.write(
            f"The last moment of a trusted clock is {when(now, now)} UTC.{before} "
            "A running serve goes by it within an hour."
        )
