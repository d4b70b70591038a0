"""`manage.py` whose pages' port waits an hour for a socket that does not read or answer a ping."""

import os
import sys
from dataclasses import replace

import django
from django.core.management import execute_from_command_line

os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
django.setup()

from dashboard.serving import pages_port  # noqa: E402

pages_port.LIMITS = replace(pages_port.LIMITS, stall_seconds=3600.0)
pages_port.PING_SECONDS = 3600.0
execute_from_command_line(sys.argv)
