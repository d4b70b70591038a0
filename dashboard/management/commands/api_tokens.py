"""`api_tokens`: make, list and revoke the tokens of programs. Works while the server runs."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.db import Error

from dashboard import clock
from dashboard.access import api_tokens
from dashboard.access.security_log import SecurityEvent, record
from dashboard.management.refusing import RefusingCommand, explain_database
from leases.models import ApiToken

WHO = "manage.py"


class Command(RefusingCommand):
    help = "Create, list and revoke the API tokens by which programs read Leaseboard."
    reads_history = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="create|list|revoke")
        create = verbs.add_parser("create", help="make a token and print it, once")
        create.add_argument("--name", required=True, help="the program that uses it")
        create.add_argument("--person", required=True, help="who it reads as: a username")
        create.add_argument("--role", default="operator", help="operator or admin (operator)")
        create.add_argument("--days", default="90", help="how long it opens (90)")
        verbs.add_parser("list", help="all tokens that were not revoked and did not expire")
        revoke = verbs.add_parser("revoke", help="refuse a token from now on")
        revoke.add_argument("number", help="its number in the list")
        for each in (create, revoke):
            each.error = self.refuse  # type: ignore[method-assign]

    def handle(self, *, verb: str, **options: Any) -> None:
        try:
            if verb == "create":
                self._create(options["name"], options["person"], options["role"], options["days"])
            elif verb == "revoke":
                self._revoke(options["number"])
            else:
                self._list()
        except Error as error:
            raise CommandError(explain_database(error)) from error

    def _create(self, name: str, person: str, role: str, days: str) -> None:
        if not 0 < len(name.strip()) <= 100 or not name.isprintable():
            raise CommandError("--name must be one line of 1 to 100 characters.")
        if not days.isdecimal() or not 1 <= int(days[:9]) <= api_tokens.MAX_DAYS:
            raise CommandError(f"--days must be a number from 1 to {api_tokens.MAX_DAYS:,}.")
        user = User.objects.filter(username=person, is_active=True).first()
        if user is None:
            raise CommandError(f"--person {person[:100]!r} is no active account.")
        allowed = api_tokens.roles_for(user)
        if role not in allowed:
            listed = " or ".join(allowed) or "none: give the person a role first"
            raise CommandError(f"--role {role[:60]!r} is not for {person}. Possible: {listed}.")
        if ApiToken.objects.filter(user=user, name=name, revoked_at=None).exists():
            raise CommandError(
                f"{person} has a token {name!r} already: revoke it, or choose another name."
            )
        now = clock.now()
        token, text = api_tokens.create(
            name=name, user=user, role=role, now=now, expires_at=now + timedelta(days=int(days))
        )
        about = f"API token {name} of {person}, role {role}"
        record(SecurityEvent.TOKEN_CREATED, who=WHO, address="", about=about)
        self.stdout.write(
            f"Created {name} ({role}) of {person}, until {token.expires_at:%Y-%m-%d}."
        )
        self.stdout.write("Its text, shown only now:")
        self.stdout.write(text)

    def _list(self) -> None:
        now = clock.now()
        found = ApiToken.objects.filter(revoked_at=None, expires_at__gt=now)
        for token in found.select_related("user").order_by("pk"):
            parts = [token.pk, token.name, token.user, token.role, f"{token.expires_at:%Y-%m-%d}"]
            if closed := api_tokens.why_closed(token, now=now):
                parts.append(f"opens nothing now: {closed}")
            self.stdout.write("\t".join(map(str, parts)))

    def _revoke(self, number: str) -> None:
        if not number.isdecimal() or not api_tokens.revoke(int(number[:18]), now=clock.now()):
            raise CommandError(f"There is no open token {number[:60]!r}: see api_tokens list.")
        token = ApiToken.objects.select_related("user").get(pk=int(number))
        about = f"API token {token.name} of {token.user}, role {token.role}"
        record(SecurityEvent.TOKEN_REVOKED, who=WHO, address="", about=about)
        self.stdout.write(f"Revoked {token.name} of {token.user}.")
