#!/usr/bin/env python3
"""Leaseboard's command line: `python3 manage.py serve` starts everything."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit("Django is missing: run python3 -m pip install -r requirements.txt first.")
    if sys.argv[1:2] == ["doctor"]:  # it reports what stops all others
        from dashboard.management import diagnosis

        diagnosis.set_aside += diagnosis.set_bad_settings_aside(os.environ)
    from django.core.exceptions import ImproperlyConfigured
    from django.db import Error

    try:
        execute_from_command_line(sys.argv)
    except Error as error:
        from dashboard.management.refusing import explain_database

        sys.exit(explain_database(error))
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except Exception as error:
        from dashboard.serving.data_directory import NewerDatabase

        if isinstance(error, NewerDatabase):
            sys.exit(str(error))
        raise


if __name__ == "__main__":
    main()
