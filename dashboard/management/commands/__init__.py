"""`manage.py` commands: thin, one per file. Tests: tests/dashboard."""
