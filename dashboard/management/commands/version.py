"""`version`: the version of this code, alone on a line."""

from typing import Any

from dashboard.config import VERSION
from dashboard.management.refusing import RefusingCommand


class Command(RefusingCommand):
    help = "Print the version of Leaseboard."
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        self.stdout.write(VERSION)
