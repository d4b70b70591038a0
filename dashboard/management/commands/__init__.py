"""`manage.py` commands: thin, one per file. Tests: tests/serving."""
