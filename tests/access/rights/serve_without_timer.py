"""`manage.py` whose rights are looked at only when this process hears of a change."""

import os
import sys

import django
from django.core.management import execute_from_command_line

os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
django.setup()

from dashboard.access import ended_rights  # noqa: E402

ended_rights.CHECK_SECONDS = 3600.0
execute_from_command_line(sys.argv)
