"""`lease_tokens`: who may use the embedded Lease API. Works while the server runs."""

import secrets
import sqlite3
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from dashboard.config import ConfigError, load
from dashboard.management.refusing import RefusingCommand
from leases.apiserver.auth import ROLES, TokenError, Tokens
from leases.apiserver.http.port import CannotStart, explained

MIN_LENGTH = 8


class Command(RefusingCommand):
    help = "Create, list and revoke the bearer tokens of the embedded Lease API."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="create|list|revoke")
        create = verbs.add_parser("create", help="make a token and print it, once")
        create.add_argument("--name", required=True, help="the user's name; its group is NAMEs")
        create.add_argument("--role", required=True, help="none, read or write")
        create.add_argument("--token", help="the value; left out, a random one is made")
        verbs.add_parser("list", help="names and roles of all tokens")
        revoke = verbs.add_parser("revoke", help="refuse a token from now on")
        revoke.add_argument("name", help="the name it was created with")
        for each in (create, revoke):
            each.error = self.refuse  # type: ignore[method-assign]

    def handle(self, *, verb: str, **options: Any) -> None:
        try:
            data = load().data
            with explained(data):
                tokens = Tokens(data)
        except (ConfigError, CannotStart) as error:
            raise CommandError(str(error)) from error
        try:
            if verb == "create":
                self._create(tokens, options["name"], options["role"], options["token"])
            elif verb == "revoke":
                tokens.revoke(options["name"])
                self.stdout.write(f"Revoked {options['name']}.")
            else:
                self._list(tokens)
        except TokenError as error:
            raise CommandError(str(error)) from error
        except sqlite3.Error as error:
            raise CommandError(f"The tokens cannot be written: {error}") from error
        finally:
            tokens.close()

    def _create(self, tokens: Tokens, name: str, role: str, value: str | None) -> None:
        if role not in ROLES:
            raise CommandError(f"--role cannot be {role!r}: write {', '.join(ROLES)}.")
        if not name.strip() or not name.isprintable():
            raise CommandError("--name cannot be blank: write the name of a person or program.")
        if value is not None and (len(value) < MIN_LENGTH or not _is_bearer(value)):
            raise CommandError(
                f"--token must have at least {MIN_LENGTH} characters, none of them blank."
            )
        token = value or secrets.token_urlsafe(32)
        tokens.create(name, role, token)
        self.stdout.write(f"Created {name} ({role}). Its token, shown only now:")
        self.stdout.write(token)

    def _list(self, tokens: Tokens) -> None:
        for token in tokens.all():
            self.stdout.write(f"{token.name}\t{token.role}\t{token.created}")


def _is_bearer(value: str) -> bool:
    return value.isascii() and value.isprintable() and " " not in value
