#!/usr/bin/env python3
"""Leaseboard's command line: `python3 manage.py serve` starts everything."""

from __future__ import annotations

import os
import sys

OLDEST = (3, 11)


def refuse_platform() -> None:
    """One sentence in place of a missing module of Windows or of an older Python."""
    if sys.platform == "win32":
        sys.exit(
            "Leaseboard does not run on Windows itself: run it in WSL (wsl --install), or "
            "the image in Docker."
        )
    if sys.version_info < OLDEST:
        running = ".".join(map(str, sys.version_info[:3]))
        sys.exit(f"Leaseboard needs Python 3.11 or newer, and this is {running}.")


def main() -> None:
    refuse_platform()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit(
            "Django is missing: run python3 -m venv .venv && . .venv/bin/activate && "
            "python3 -m pip install -r requirements.txt first."
        )
    if sys.argv[1:2] == ["doctor"]:  # it reports what stops all others
        from dashboard.management import setup_diagnosis

        setup_diagnosis.set_aside += setup_diagnosis.set_bad_settings_aside(os.environ)
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
