"""A command that answers bad input with one sentence and exit code 1: see docs/operations.md."""

from __future__ import annotations

from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import Error, connection

from dashboard.access.redaction import redact
from dashboard.serving.newer_database import check_not_newer


def explain_database(error: Error) -> str:
    """One sentence about a database that a command cannot use, without its password."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    said = lines[0].rstrip(".")
    which = "The database"
    if connection.vendor == "sqlite":
        which = f"The database {settings.DATABASES['default']['NAME']}"
    if "no such table" in said or "does not exist" in said:
        return redact(f"{which} is empty ({said}): run serve once, or manage.py migrate.")
    return redact(
        f"{which} cannot be used: {said}. Check LEASEBOARD_DATA and LEASEBOARD_DATABASE_URL."
    )


class RefusingCommand(BaseCommand):
    """Its options are refused without a page of usage.

    With `reads_history`, a database of a newer version is refused too.
    """

    reads_history = False

    def execute(self, *args: Any, **options: Any) -> str | None:
        if self.reads_history:
            check_not_newer()
        return super().execute(*args, **options)

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.error = self.refuse  # type: ignore[method-assign]
        return parser

    def refuse(self, message: str) -> NoReturn:
        self.stderr.write(f"{message.rstrip('.')}.")
        raise SystemExit(1)
