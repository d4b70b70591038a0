"""A command that answers bad input with one sentence and exit code 1: see README's "Start"."""

from __future__ import annotations

from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser


class RefusingCommand(BaseCommand):
    """Its options are refused without a page of usage."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.error = self.refuse  # type: ignore[method-assign]
        return parser

    def refuse(self, message: str) -> NoReturn:
        self.stderr.write(f"{message.rstrip('.')}.")
        raise SystemExit(1)
