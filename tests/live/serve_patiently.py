"""`manage.py` whose pages' port waits an hour for a socket that does not read or answer a ping.

It has places for few sockets of one account, which a test can use up.
"""

import os
import sys
from dataclasses import replace

import django
from django.core.management import execute_from_command_line

os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
django.setup()

from dashboard.live import publisher  # noqa: E402
from dashboard.serving import pages_port  # noqa: E402
from tests.live.few_places import PLACES  # noqa: E402

pages_port.LIMITS = replace(pages_port.LIMITS, stall_seconds=3600.0)
pages_port.PING_SECONDS = 3600.0
publisher.MAX_SOCKETS = PLACES
execute_from_command_line(sys.argv)
