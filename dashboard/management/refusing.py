"""What commands share: bad input is one sentence and exit code 1; ports, paths, feature gates."""

import os
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, connection

from dashboard.log_lines import redact
from dashboard.serving.data_directory import check_not_newer
from leases.apiserver.resources import CLE_GATE


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


LAST_PORT = 65535


def parse_port(text: str, *, least: int = 1) -> int:
    """Parse a port from the command line, which prints the error as one sentence."""
    digits = text.isascii() and text.isdecimal() and len(text) <= len(str(LAST_PORT))
    if not digits or not least <= int(text) <= LAST_PORT:
        raise ArgumentTypeError(
            f"{text[:20]!r} is no port; write a number from {least} to {LAST_PORT}"
        )
    return int(text)


USUAL_PORT = 8000


def pages_port(port: int | None) -> int:
    """The port of the pages as given, else that of the environment. Raises CommandError."""
    given = os.environ.get("PORT", "")
    if port is not None or not given:
        return port or USUAL_PORT
    try:
        return parse_port(given)
    except ArgumentTypeError as error:
        raise CommandError(f"PORT of the environment: {error}, or give --port.") from None


def origin_of(host: str, port: int) -> str:
    """Where a browser on this machine finds the pages."""
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 - shown, not bound
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def shown_path(path: Path) -> str:
    """Return the path relative to the working directory if that is shorter."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


GATES = (CLE_GATE,)
HELP = f"of the embedded API, as kube-apiserver's; known: {', '.join(GATES)}"


def parse_gates(text: str) -> frozenset[str]:
    """The gates that are on. Raises ArgumentTypeError, which says what may be written."""
    found = set()
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in GATES:
            raise ArgumentTypeError(f"{name!r} is no gate: write {', '.join(GATES)}")
        if value.lower() not in ("true", "false"):
            raise ArgumentTypeError(f"{part!r} is not clear: write {name}=true or {name}=false")
        if value.lower() == "true":
            found.add(name)
    return frozenset(found)
