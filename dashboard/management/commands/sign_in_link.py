"""`sign_in_link`: print a link that signs one person in, once. Works while the server runs."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.db import Error
from django.urls import reverse

from dashboard import clock
from dashboard.access import sign_in_links
from dashboard.access.security_log import SecurityEvent, record
from dashboard.management.refusing import (
    RefusingCommand,
    explain_database,
    origin_of,
    pages_port,
    parse_port,
)


class Command(RefusingCommand):
    help = "Print a link that signs NAME in, once, within an hour."
    reads_history = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="a username; admin is the first account")
        parser.add_argument("--host", default="127.0.0.1", help="address of the pages")
        parser.add_argument(
            "--port",
            type=parse_port,
            help="their port, unless LEASEBOARD_URL is set (PORT of the environment, else 8000)",
        )

    def handle(self, *, name: str, host: str, port: int | None, **options: Any) -> None:
        port = pages_port(port)
        try:
            user = User.objects.filter(username=name, is_active=True).first()
            if user is None:
                raise CommandError(
                    f"There is no active account {name[:100]!r}: serve makes the first one, admin, "
                    "and admins add the others under People."
                )
            token = sign_in_links.create(user, now=clock.now())
            record(
                SecurityEvent.LINK_CREATED,
                who="manage.py",
                address="",
                about=f"sign-in link for {user}, printed by sign_in_link",
            )
        except Error as error:
            raise CommandError(explain_database(error)) from error
        origin = settings.LEASEBOARD.url or origin_of(host, port)
        self.stdout.write(f"Signs {user} in once, within an hour:")
        self.stdout.write(f"{origin}{reverse('sign_in_by_link', args=[token])}")
